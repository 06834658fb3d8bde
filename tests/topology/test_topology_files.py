"""The files in `topologies/` are what their comments say."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest

from fedsim import registry
from fedsim.scenario.yaml_reader import read_yaml
from fedsim.topology.graph import Topology
from fedsim.topology.imported import read_topology_data

FOLDER = Path(__file__).parents[2] / "topologies"
GRAPHS = {"backbone.graphml"}
"""Files that are no networks yet: others explain them."""
FILES = sorted(path.name for path in FOLDER.iterdir() if path.name not in GRAPHS)


def read(name: str) -> Topology:
    path = FOLDER / name
    if path.suffix == ".yaml":
        document = read_yaml(path, holds="a topology")
        mapping = document.data
    else:
        document, mapping = None, read_topology_data(path, path.read_text(encoding="utf-8"))
    topology: Topology = (
        registry.load("topologies", str(mapping["name"])).model_validate(mapping, context=document).build()
    )
    return topology


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_a_network(name: str) -> None:
    assert read(name).sensors


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_every_graph_is_explained_by_another_file(name: str) -> None:
    explained = [path for path in FOLDER.glob("*.yaml") if f"path: {name}\n" in path.read_text(encoding="utf-8")]
    assert explained


def test_the_park_has_ten_factories_of_eight_sensors() -> None:
    park = read("park-10-factories.yaml")
    assert repr(park) == "Topology(80 sensors, 10 base stations, 10 edges, 1 cloud)"
    assert Counter(Counter(park.cell_of(sensor) for sensor in park.sensors).values()) == {8: 10}
    _, station, edge, cloud = park.route(park.sensors[0], park.cloud)
    assert park.graph.edges[station, edge] == {"rate_bps": 1e9, "delay_s": 0.5e-3}
    assert park.graph.edges[edge, cloud] == {"rate_bps": 1e9, "delay_s": 5e-3}


def test_the_single_cell_has_368_sensors_and_nothing_behind_it_takes_time() -> None:
    cell = read("one-cell-368.yaml")
    assert len(cell.sensors) == 368
    assert len({cell.cell_of(sensor) for sensor in cell.sensors}) == 1
    assert cell.graph.edges["station", "cloud"] == {"rate_bps": math.inf, "delay_s": 0.0}


def test_the_two_examples_show_the_same_network() -> None:
    assert read("example.json") == read("example.graphml")
    assert repr(read("example.json")) == "Topology(4 sensors, 2 base stations, 1 edge, 1 cloud)"


def test_the_backbone_is_a_ring_of_sites_with_delays_by_distance() -> None:
    backbone = read("backbone.yaml")
    assert repr(backbone) == "Topology(40 sensors, 5 base stations, 0 edges, 1 cloud)"
    assert backbone.cloud == "Frankfurt"
    assert backbone.route("Leipzig/sensor-1", "Frankfurt")[1:] == ("Leipzig", "Hannover", "Köln", "Frankfurt")
    rates = [backbone.graph.edges[ends]["rate_bps"] for ends in (("Leipzig", "Nürnberg"), ("Nürnberg", "Stuttgart"))]
    assert rates == [100e6, 2e9]
    distance_m = math.hypot(50.94 - 50.11, (8.68 - 6.96) * math.cos(math.radians(50.525))) * 111_195
    assert backbone.graph.edges["Frankfurt", "Köln"]["delay_s"] == pytest.approx(distance_m / 2e8, rel=1e-3)
