"""A regular tree: as many nodes on each level as ordered, called after their parents, in cells that do not overlap."""

from __future__ import annotations

import itertools
import math
import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from some_topologies import kinds, of_kind, places

from fedsim.topology.graph import NodeKind
from fedsim.topology.settings import WireSettings
from fedsim.topology.tree import Tree


def nodes_of_a_tree(tree: Tree) -> list[int]:
    """How many nodes each level has, below the cloud."""
    return list(itertools.accumulate(tree.branching, operator.mul))


trees = st.builds(
    Tree,
    branching=st.lists(st.integers(1, 11), min_size=1, max_size=3).map(tuple),
    devices_per_station=st.integers(1, 11),
    radius_m=st.floats(1, 1e3),
).filter(lambda tree: nodes_of_a_tree(tree)[-1] * tree.devices_per_station <= 1_000)


@given(trees)
def test_a_tree_has_what_was_ordered(tree: Tree) -> None:
    topology, levels = tree.build(), nodes_of_a_tree(tree)
    assert kinds(topology) == {
        NodeKind.CLOUD: 1,
        NodeKind.BASE_STATION: levels[-1],
        NodeKind.SENSOR: levels[-1] * tree.devices_per_station,
        **({NodeKind.EDGE: sum(levels[:-1])} if len(levels) > 1 else {}),
    }
    assert topology.infrastructure.number_of_edges() == sum(levels)  # no spare wire
    assert {len(topology.route(sensor, "cloud")) for sensor in topology.sensors} == {len(levels) + 2}
    assert list(topology.sensors) == sorted(topology.sensors)
    stations = of_kind(NodeKind.BASE_STATION, topology)
    assert stations == sorted(stations)


@given(trees)
def test_whoever_hangs_below_a_node_of_a_tree_is_called_after_it(tree: Tree) -> None:
    topology = tree.build()
    for node, parent in topology.towards("cloud").items():
        assert node.rpartition("/")[0] == ("" if parent == "cloud" else parent)
    for sensor in topology.sensors:
        assert sensor.rpartition("/")[0] == topology.cell_of(sensor)


@given(trees)
def test_the_cells_of_a_tree_do_not_overlap(tree: Tree) -> None:
    topology = tree.build()
    at = places(topology)
    cells = [at[name] for name in of_kind(NodeKind.BASE_STATION, topology)]
    for one, other in itertools.combinations(cells[:60], 2):
        # Each level's places are rounded to millimetres, in x and y, on both ways down the tree.
        assert math.dist(one, other) >= 2 * tree.radius_m - len(tree.branching) * math.sqrt(2) * 1e-3


def test_a_thousand_stations_hang_directly_below_the_cloud() -> None:
    topology = Tree(branching=(1000,), devices_per_station=2).build()
    assert repr(topology) == "Topology(2000 sensors, 1000 base stations, 0 edges, 1 cloud)"
    assert topology.route("station-0017/sensor-2", "cloud") == ("station-0017/sensor-2", "station-0017", "cloud")
    assert topology.graph.degree("cloud") == 1000


def test_the_wires_of_a_tree_are_alike_on_each_level() -> None:
    wires = (WireSettings(rate_bps=1e9, delay_s=0.01), WireSettings(), WireSettings(rate_bps=math.inf))
    topology = Tree(branching=(2, 2, 2), devices_per_station=1, wires=wires).build()
    for node, parent in topology.towards("cloud").items():
        level = len(topology.route(node, "cloud")) - 2
        assert topology.graph.edges[node, parent] == wires[level].model_dump()


def test_each_level_of_a_tree_must_have_its_wire() -> None:
    with pytest.raises(ValidationError) as refusal:
        Tree(branching=(2, 3), devices_per_station=1, wires=(WireSettings(),))
    assert refusal.value.errors()[0]["msg"] == (
        "Value error, the wires of 1 levels are described, and there are 2 in branching; "
        "give an entry for each, {} where the scenario's default holds"
    )
