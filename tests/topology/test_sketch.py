"""A `Sketch` checks what is added, and a network is made of it without a copy."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable

import networkx as nx
import pytest
from hypothesis import given
from some_topologies import plant, topologies

from fedsim.errors import UserError
from fedsim.topology.factories import FactoryPark
from fedsim.topology.graph import Topology
from fedsim.topology.sketch import Sketch


@given(topologies())
def test_what_is_drawn_node_by_node_is_what_was_given_as_a_graph(topology: Topology) -> None:
    sketch = Sketch()
    for name, node in topology.graph.nodes(data=True):
        sketch.add_node(name, node["kind"], position_m=node["position_m"], device=node["device"])
    for a, b, link in topology.graph.edges(data=True):
        sketch.add_link(b, a, rate_bps=link["rate_bps"], delay_s=link["delay_s"])
    assert Topology.of(sketch) == topology


def test_a_released_graph_is_the_topologys_alone() -> None:
    sketch = Sketch.of(plant())
    topology = Topology.of(sketch)
    assert "cam" not in sketch
    sketch.add_node("cam", "cloud")
    assert topology == Topology(plant())


def test_a_sketch_of_a_graph_is_a_copy() -> None:
    graph = plant()
    sketch = Sketch.of(graph)
    graph.remove_node("cam")
    assert "cam" in sketch
    assert nx.is_frozen(Topology.of(sketch).graph)
    assert not nx.is_frozen(graph)


def test_building_a_network_needs_little_more_memory_than_the_network() -> None:
    park = FactoryPark(factories=5, devices_per_factory=400, stations_per_factory=2)
    park.build()  # what is imported and cached on first use
    tracemalloc.start()
    try:
        topology = park.build()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(topology.sensors) == 2_000
    own_links = 2_000 * sys.getsizeof({"station": None})  # until all sensors are known to be in their cells
    assert peak < 1.2 * (kept + own_links)  # a second graph would make it 2


REFUSED: dict[str, tuple[Callable[[Sketch], object], str]] = {
    "name that is taken": (
        lambda sketch: sketch.add_node("cam", "sensor"),
        "there is another node called 'cam', and names must differ; rename one",
    ),
    "kind": (
        lambda sketch: sketch.add_node("new", "egde"),
        "node 'new': kind='egde' must be one of sensor, base_station, edge, cloud; did you mean 'edge'?",
    ),
    "unknown end": (
        lambda sketch: sketch.add_link("cam", "bs1"),
        "no node is called 'bs1'; did you mean 'bs-1'?",
    ),
    "second link": (
        lambda sketch: sketch.add_link("edge", "cloud"),
        "'edge' and 'cloud' are linked already, and a link goes both ways; keep one",
    ),
    "link to itself": (
        lambda sketch: sketch.add_link("edge", "edge"),
        "'edge' is linked to itself, and a link must join two nodes; remove it",
    ),
}


@pytest.mark.parametrize(("add", "message"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_at_once(add: Callable[[Sketch], object], message: str) -> None:
    sketch = Sketch.of(plant())
    with pytest.raises(UserError) as refusal:
        add(sketch)
    assert str(refusal.value) == message
    assert Topology.of(sketch) == Topology(plant())  # and is as it was
