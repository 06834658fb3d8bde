"""What a scenario names beside itself is found in whatever folder they are, and messages show it on one line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from small_worlds import BASE

from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.experiment.validate import validate
from fedsim.scenario.load import load

ODD = {
    "a line break": b"two\nlines",
    "from right to left": "\u202eabc".encode(),
    "no UTF-8": b"\xff\xfe",
    "a wild card": b"*",
}
GRAPH = {"nodes": [{"id": "c"}, {"id": "b"}], "links": [{"source": "c", "target": "b"}]}
KINDS = {"c": "cloud", "b": "base_station", "s": "sensor"}
DRAWN = {
    "nodes": [{"id": name, "kind": kind} for name, kind in KINDS.items()],
    "links": [{"source": "c", "target": "b"}, {"source": "b", "target": "s"}],
}
IMPORTED = {"name": "imported", "path": "graph.json", "clouds": ["c"], "sensors_per_station": 2}
TOPOLOGIES: dict[str, object] = {
    "a drawing": "drawn.json",
    "a topology": "nodes.yaml",
    "a graph": IMPORTED,
    "a graph in a topology": "imported.yaml",
}
FILES = {
    "graph.json": GRAPH,
    "drawn.json": DRAWN,
    "imported.yaml": IMPORTED,
    "nodes.yaml": {
        "name": "explicit",
        "nodes": {name: {"kind": kind} for name, kind in KINDS.items()},
        "links": [{"between": ["c", "b"]}, {"between": ["b", "s"]}],
    },
}


@pytest.fixture(params=ODD.values(), ids=ODD)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of an odd name, with files that a scenario may name."""
    folder = tmp_path / os.fsdecode(request.param)
    folder.mkdir()
    for name, content in FILES.items():
        (folder / name).write_text(json.dumps(content))
    (folder / "hall.csv").write_text("time_s,uplink_bps,downlink_bps\n0,1e6,1e6\n")
    return folder


def written(folder: Path, **changes: object) -> Path:
    path = folder / "plant.yaml"
    path.write_text(yaml.safe_dump(BASE | {"protocols": [{"name": "fedavg", "clients": 1}]} | changes))
    return path


@pytest.mark.parametrize("topology", TOPOLOGIES.values(), ids=TOPOLOGIES)
def test_a_topology_is_found(topology: object, folder: Path) -> None:
    assert validate(load(written(folder, topology=topology))).topology.sensors


def test_a_topology_that_is_set_is_found(folder: Path) -> None:
    scenario = load(written(folder), overrides=[f"topology={json.dumps(IMPORTED)}"])
    assert validate(scenario).topology.sensors == ("b/sensor-1", "b/sensor-2")


def test_a_trace_is_found_unless_no_scenario_could_name_it(folder: Path) -> None:
    network = {"cell": {"radio": {"name": "trace", "path": "hall.csv"}}, "link": {"rate_bps": 1_000}}
    scenario = load(written(folder, network=network))
    if "\udcff" in folder.name:
        with pytest.raises(UserError, match=r"network\.cell\.radio\.path: cannot be kept in a run folder: .* no UTF-8"):
            validate(scenario)
    else:
        assert validate(scenario)


def test_a_mistake_is_told_on_one_line_that_can_be_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(folder, topology=IMPORTED | {"path": "nowhere.json"})
    for words in (["validate", str(path)], ["run", str(folder)], ["compare", str(folder)], ["plot", str(path)]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and said[:-1].isprintable()


def test_a_run_goes_through_and_its_results_are_read_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(folder / "run")
    assert main(["run", str(written(folder)), "--out", out]) == 0
    assert main(["run", str(folder / "run" / "scenario.yaml"), "--out", out]) == 0
    assert main(["compare", out, "--csv", str(folder / "a.csv")]) == 0
    assert main(["validate", str(folder / "plant.yaml")]) == 0
    said = capsys.readouterr()
    assert all(line.isprintable() for text in (said.out, said.err) for line in text.split("\n"))
    assert (folder / "a.csv").read_text().startswith("run,protocol,")
