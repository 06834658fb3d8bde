"""Which factory a sensor is in follows from where the wires from its base station lead first."""

from __future__ import annotations

import pytest

from fedsim.topology.explicit import Explicit
from fedsim.topology.factories import FactoryPark, Ring
from fedsim.topology.graph import Topology
from fedsim.topology.places import factories, factory_names
from fedsim.topology.tree import Star, Tree


def test_a_factory_is_what_is_behind_one_edge_server() -> None:
    park = FactoryPark(factories=3, devices=7, stations_per_factory=2)
    assert factories(park.build()).tolist() == [0, 0, 1, 1, 2, 2, 2]
    ring = Ring(factories=3, devices_per_factory=2)
    assert factories(ring.build()).tolist() == [0, 0, 1, 1, 2, 2]


def test_without_edge_servers_it_is_a_cell() -> None:
    assert factories(Star(devices=3).build()).tolist() == [0, 0, 0]
    nodes = {"cloud": {"kind": "cloud"}}
    for station in ("east", "west"):
        nodes |= {station: {"kind": "base_station"}, f"{station}-cam": {"kind": "sensor", "attach": station}}
    links = [{"between": ["cloud", "east"]}, {"between": ["cloud", "west"]}]
    two_cells = Explicit(nodes=nodes, links=links).build()
    assert factories(two_cells).tolist() == [0, 1]
    assert factory_names(two_cells) == ("east", "west")


def test_in_a_tree_it_is_the_nearest_edge_server() -> None:
    tree = Tree(branching=(2, 3), devices_per_station=2).build()
    assert factory_names(tree) == tuple(dict.fromkeys(tree.route(sensor, tree.cloud)[2] for sensor in tree.sensors))
    assert factories(tree).tolist() == [0] * 6 + [1] * 6


def test_no_whole_way_is_listed_to_find_a_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Topology, "route")  # in a ring the ways of all factories are as long as their number squared
    assert factories(Ring(factories=300, devices_per_factory=1).build()).tolist() == list(range(300))
