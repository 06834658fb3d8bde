"""A graph of another tool in a scenario: its path, its copy without the file, and messages with their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
from drawn_towns import ON_A_MAP, ZOO, imported, triangle, typed

from fedsim.errors import UserError
from fedsim.experiment.run import run
from fedsim.scenario.load import load, written_out
from fedsim.topology.explicit import Explicit
from fedsim.topology.imported import self_contained

pytestmark = pytest.mark.usefixtures("folder_of_its_own")


def towns_with_a_sensor_of_that_name() -> nx.Graph[str]:
    graph = triangle()
    graph.add_edge("Linz", "Linz/sensor")
    return graph


@pytest.mark.parametrize(
    ("content", "keys", "entries"),
    [
        (ZOO, {**ON_A_MAP, "sensors_per_station": 1}, 4 + 3),
        (ZOO, {"name_attribute": "label", "sensors_per_station": 200, "device": "camera"}, 4 + 3),
        (ZOO, {**ON_A_MAP, "radius_m": 9.0, "leaf_kind": "edge", "sensors_per_station": 2}, 4 + 4),
        (towns_with_a_sensor_of_that_name(), {"leaf_kind": "edge", "sensors_per_station": 3}, 4 + 2 * 3),
        (typed(), {"clouds": [], "sensors_per_station": None, "kind_attribute": "type"}, 3),
    ],
    ids=["one each", "many alike", "each in a place", "a name that is taken", "none but those of the file"],
)
def test_a_copy_without_the_file_is_the_same_network(
    content: nx.Graph[Any] | str, keys: dict[str, Any], entries: int
) -> None:
    settings = imported(content, **keys)
    Path("zoo.graphml").unlink()
    written = self_contained(settings)
    assert isinstance(written, Explicit)
    assert len(written.nodes) == entries
    again = Explicit.model_validate(json.loads(json.dumps(written.model_dump(mode="json"))))
    assert again.build() == settings.build()
    assert self_contained(written) is written


PLANT = """\
name: towns
stop: {rounds: 2}
learn: false
topology:
  name: imported
  path: graphs/zoo.graphml
  clouds: [Vienna]
  name_attribute: label
  sensors_per_station: 2
  rate_attribute: LinkSpeedRaw
  rate_bps: 1.0e+9
  position: {latitude: Latitude, longitude: Longitude}
  delay_from_distance: {}
  delay_s: 0.001
network:
  cell:
    radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}
devices:
  classes:
    camera: {compute: {name: flops, flops_per_s: 1.0e+9}}
data: {name: declared, samples_per_client: 100, sample_bytes: 785}
model: {name: declared, parameters: 1000, training_flops_per_sample: 1.0e+6}
training: {learning_rate: 0.1, batch_size: 8}
protocols:
  - {name: fedavg, fraction: 0.5}
"""


@pytest.fixture
def plant() -> Path:
    Path("graphs").mkdir()
    Path("graphs/zoo.graphml").write_text(ZOO, encoding="utf-8")
    path = Path("plant.yaml")
    path.write_text(PLANT, encoding="utf-8")
    return path


def test_the_scenario_in_a_run_folder_repeats_the_run_without_the_file(plant: Path) -> None:
    scenario = load(plant)
    results = run(scenario, out=Path("runs/first"))
    Path("graphs/zoo.graphml").unlink()
    again = load(Path("runs/first/scenario.yaml"))
    assert again == scenario
    assert written_out(again) == written_out(scenario)
    pd.testing.assert_frame_equal(run(again, out=Path("runs/second")).rounds, results.rounds)


def test_a_changed_file_is_another_scenario(plant: Path) -> None:
    scenario = load(plant)
    graph = Path("graphs/zoo.graphml")
    graph.write_text(ZOO.replace("10000000000.0", "2.5e9"), encoding="utf-8")
    assert load(plant) != scenario
    assert load(plant).topology.build().graph.edges["Vienna", "Linz"]["rate_bps"] == 2.5e9


def test_the_path_is_relative_to_the_file_that_it_stands_in(plant: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = load(plant).topology
    by_override = ["topology.path=graphs/other.graphml"]
    Path("graphs/other.graphml").write_text(ZOO, encoding="utf-8")
    assert load(plant, overrides=by_override).topology == network

    lines = PLANT.splitlines()
    own = "\n".join(line.removeprefix("  ") for line in lines[4:14]).replace("graphs/", "")
    Path("graphs/towns.yaml").write_text(own, encoding="utf-8")
    split = "\n".join([*lines[:3], "topology: graphs/towns.yaml", *lines[14:]])
    Path("split.yaml").write_text(split, encoding="utf-8")
    monkeypatch.chdir("graphs")
    assert load(Path("../split.yaml")).topology == network
    by_override[0] = by_override[0].replace("graphs/", "graphs/../graphs/")
    assert load(Path("../split.yaml"), overrides=by_override).topology == network


def test_what_is_wrong_is_said_with_the_key_and_its_place(plant: Path) -> None:
    def said(*overrides: str) -> str:
        with pytest.raises(UserError) as refused:
            load(plant, overrides=overrides)
        return str(refused.value)

    assert said("topology.clouds=[Wienna]") == (
        "--set topology.clouds=[Wienna]: topology.clouds[0]: graphs/zoo.graphml has no node 'Wienna'; "
        "did you mean 'Vienna'?"
    )
    graph = Path("graphs/zoo.graphml")
    graph.write_text(ZOO.replace("1000000000.0", "fast", 1), encoding="utf-8")
    assert said("topology.rates={slow: 1}") == (
        "--set topology.rates={slow: 1}: topology.rates: graphs/zoo.graphml:44: link '0' - '2': "
        "LinkSpeedRaw='fast' must be a number; say in rates what else it means, in bit/s"
    )
    graph.write_text("<graphml>", encoding="utf-8")
    assert said() == "plant.yaml:6: topology.path: graphs/zoo.graphml:1:10: this is not GraphML: no element found"
