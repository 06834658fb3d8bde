"""The files in `topologies/` are what their comments say."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from fedsim import registry
from fedsim.topology.graph import Topology
from fedsim.topology.readers import read_topology_data

FOLDER = Path(__file__).parents[2] / "topologies"
FILES = sorted(path.name for path in FOLDER.iterdir())


def read(name: str) -> Topology:
    path = FOLDER / name
    text = path.read_text(encoding="utf-8")
    mapping: dict[str, Any] = yaml.safe_load(text) if path.suffix == ".yaml" else read_topology_data(path, text)
    topology: Topology = registry.load("topologies", mapping["name"]).model_validate(mapping).build()
    return topology


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_a_network(name: str) -> None:
    assert read(name).sensors


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
