"""A `Topology` is connected, has a cloud, and sensors hang off its base stations, or it is refused with a reason."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from some_topologies import plant, topologies, wired

from fedsim.errors import UserError
from fedsim.topology.graph import NodeKind, Topology

Graph = nx.Graph  # of texts


# Cells


@given(topologies())
def test_a_sensor_and_its_station_are_neighbours(topology: Topology) -> None:
    for sensor in topology.sensors:
        station = topology.cell_of(sensor)
        assert list(topology.graph[sensor]) == [station]
        assert topology.graph.nodes[station]["kind"] == NodeKind.BASE_STATION


def test_an_unknown_node_gets_a_hand() -> None:
    with pytest.raises(UserError, match="^the topology has no node 'cma'; did you mean 'cam'\\?$"):
        Topology(plant()).cell_of("cma")


def test_only_a_sensor_has_a_cell() -> None:
    with pytest.raises(UserError, match="^'bs-1' is of kind base_station; only a sensor has a cell, so name a sensor$"):
        Topology(plant()).cell_of("bs-1")


# What a topology keeps


def test_the_order_of_the_sensors_is_the_order_of_the_nodes() -> None:
    graph = plant()
    for name in ("z", "a", "m"):
        graph.add_node(name, kind="sensor")
        graph.add_edge(name, "bs-2")
    assert Topology(graph).sensors == ("cam", "z", "a", "m")


@given(topologies())
def test_the_clouds_are_in_the_order_of_the_nodes_and_the_first_one_is_the_cloud(topology: Topology) -> None:
    clouds = [name for name, node in topology.graph.nodes(data=True) if node["kind"] == NodeKind.CLOUD]
    assert list(topology.clouds) == clouds
    assert topology.cloud == clouds[0]


@given(topologies())
def test_the_infrastructure_is_the_graph_without_its_sensors_and_in_its_order(topology: Topology) -> None:
    assert nx.utils.graphs_equal(topology.infrastructure, wired(topology.graph))
    sensors = set(topology.sensors)
    assert list(topology.infrastructure) == [name for name in topology.graph if name not in sensors]
    wires = [(a, b) for a, b in topology.graph.edges if a not in sensors and b not in sensors]
    assert list(topology.infrastructure.edges) == wires


def test_absent_attributes_are_none_and_foreign_ones_are_dropped() -> None:
    graph = plant()
    graph.nodes["edge"].update(position_m=[1, 2], device="server", colour="red")
    graph.edges["cloud", "edge"].update(rate_bps=10**9, label="fibre")
    topology = Topology(graph)
    assert topology.graph.nodes["edge"] == {"kind": NodeKind.EDGE, "position_m": (1.0, 2.0), "device": "server"}
    assert topology.graph.nodes["cam"] == {"kind": NodeKind.SENSOR, "position_m": None, "device": None}
    assert topology.graph.edges["cloud", "edge"] == {"rate_bps": 1e9, "delay_s": None}
    assert topology.graph.edges["bs-1", "cam"] == {"rate_bps": None, "delay_s": None}
    assert isinstance(topology.graph.nodes["cam"]["kind"], NodeKind)


def test_numbers_may_be_numpys() -> None:
    graph = plant()
    graph.nodes["edge"]["position_m"] = (np.int64(3), np.float32(0.5))
    graph.edges["cloud", "edge"].update(rate_bps=np.int32(1000), delay_s=np.float32(0.25))
    topology = Topology(graph)
    assert topology.graph.nodes["edge"]["position_m"] == (3.0, 0.5)
    assert topology.graph.edges["cloud", "edge"] == {"rate_bps": 1000.0, "delay_s": 0.25}
    assert type(topology.graph.edges["cloud", "edge"]["delay_s"]) is float


def test_a_topology_does_not_change_with_the_graph_it_was_made_of() -> None:
    graph = plant()
    topology = Topology(graph)
    graph.add_edge("bs-1", "bs-2")
    graph.nodes["cam"]["kind"] = "edge"
    assert topology == Topology(plant())
    for kept in (topology.graph, topology.infrastructure):
        with pytest.raises(nx.NetworkXError, match="Frozen graph"):
            kept.add_edge("bs-1", "bs-2")


@given(topologies())
def test_a_copy_is_equal(topology: Topology) -> None:
    assert Topology(topology.graph) == topology
    assert copy.deepcopy(topology) == topology
    assert pickle.loads(pickle.dumps(topology)).route(topology.cloud, topology.sensors[0])[0] == topology.cloud


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: graph.nodes["cam"].update(position_m=(0.0, 0.0)),
        lambda graph: graph.nodes["cam"].update(device="camera"),
        lambda graph: graph.edges["cloud", "edge"].update(rate_bps=1e6),
        lambda graph: graph.add_edge("bs-2", graph.add_node("bs-3", kind="edge") or "bs-3"),
        lambda graph: graph.nodes["bs-2"].update(kind="edge"),
    ],
    ids=["position", "device", "rate", "node", "kind"],
)
def test_what_differs_in_anything_is_not_equal(change: Callable[[Graph[str]], object]) -> None:
    graph = plant()
    change(graph)
    assert Topology(graph) != Topology(plant())


def test_the_order_of_the_sensors_matters_and_the_order_of_links_does_not() -> None:
    def two(*order: str) -> Topology:
        graph = plant()
        for name in order:
            graph.add_node(name, kind="sensor")
        for name in ("a", "b"):
            graph.add_edge(name, "bs-2")
        return Topology(graph)

    assert two("a", "b") != two("b", "a")
    other = plant()
    edge = other["bs-1"]["cam"]
    other.remove_edge("bs-1", "cam")
    other.add_edge("cam", "bs-1", **edge)
    assert Topology(other) == Topology(plant())


def test_it_counts_when_it_is_printed() -> None:
    assert repr(Topology(plant())) == "Topology(1 sensor, 2 base stations, 1 edge, 1 cloud)"


# What a topology refuses


def spoilt(*changes: Callable[[Graph[str]], object]) -> Graph[str]:
    graph = plant()
    for change in changes:
        change(graph)
    return graph


def node(name: Any, **attributes: Any) -> Callable[[Graph[str]], object]:
    return lambda graph: graph.add_node(name, **attributes)


def link(a: str, b: str, **attributes: Any) -> Callable[[Graph[str]], object]:
    return lambda graph: graph.add_edge(a, b, **attributes)


def unlink(a: str, b: str) -> Callable[[Graph[str]], object]:
    return lambda graph: graph.remove_edge(a, b)


REFUSED = {
    "no cloud": (
        [node("cloud", kind="edge")],
        "no node is of kind 'cloud', and at least one must be: it holds the global model; add one",
    ),
    "no sensor": (
        [node("cam", kind="edge")],
        "no node is of kind 'sensor', and at least one must be: sensors hold the data; add one",
    ),
    "sensor without a link": (
        [unlink("bs-1", "cam")],
        "sensor 'cam' is linked to nothing and must be to one base station; attach it to one",
    ),
    "sensor at two base stations": (
        [link("cam", "bs-2")],
        "sensor 'cam' is linked to 2 nodes ('bs-1', 'bs-2') and must be to one base station only; keep one link",
    ),
    "sensor at an edge server": (
        [unlink("bs-1", "cam"), link("cam", "edge")],
        "sensor 'cam' is linked to 'edge', which is of kind edge, and must be to a base station; "
        "put a node of kind 'base_station' between them",
    ),
    "air with a rate": (
        [link("bs-1", "cam", rate_bps=1e6)],
        "link 'cam' - 'bs-1' is air: rate_bps=1000000.0 belongs to wires, because a cell's radio sets rate and delay; "
        "remove it and describe the radio in the scenario",
    ),
    "unreachable sensor": (
        [unlink("edge", "bs-1")],
        "sensor 'cam' (and 1 more) has no way to the cloud 'cloud', and must have one; link 'bs-1' to a node that has",
    ),
    "unreachable base station": (
        [unlink("edge", "bs-2")],
        "base_station 'bs-2' has no way to the cloud 'cloud', and must have one; link 'bs-2' to a node that has",
    ),
    "unreachable cloud": (
        [node("far", kind="cloud"), node("bs-3", kind="base_station"), link("far", "bs-3")],
        "cloud 'far' (and 1 more) has no way to the cloud 'cloud', and must have one; "
        "link 'far', 'bs-3' to a node that has",
    ),
    "link to itself": (
        [link("edge", "edge")],
        "'edge' is linked to itself, and a link must join two nodes; remove it",
    ),
    "no kind": (
        [lambda graph: graph.nodes["edge"].clear()],
        "node 'edge' has no kind, and must have one of sensor, base_station, edge, cloud; give it the attribute kind",
    ),
    "misspelt kind": (
        [node("bs-1", kind="basestation")],
        "node 'bs-1': kind='basestation' must be one of sensor, base_station, edge, cloud; "
        "did you mean 'base_station'?",
    ),
    "name that is no text": (
        [node(7, kind="sensor")],
        "a node is called 7, and a name must be text that can be printed; rename it",
    ),
    "empty device": (
        [node("cam", device="")],
        "node 'cam': device='' must be the name of a device class; leave it out for none",
    ),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_it_refuses(changes: list[Callable[[Graph[str]], object]], message: str) -> None:
    with pytest.raises(UserError) as refusal:
        Topology(spoilt(*changes))
    assert str(refusal.value) == message


@pytest.mark.parametrize("rate_bps", [0, 0.0, -1e6, math.nan, -math.inf, "1e6", True])
def test_it_refuses_a_rate_that_is_not_positive(rate_bps: object) -> None:
    with pytest.raises(UserError) as refusal:
        Topology(spoilt(link("cloud", "edge", rate_bps=rate_bps)))
    assert str(refusal.value) == (
        f"link 'cloud' - 'edge': rate_bps={rate_bps!r} must be a positive number (infinity is one); "
        "leave it out for the scenario's default"
    )


@pytest.mark.parametrize("delay_s", [-1e-9, math.nan, math.inf, "0", False])
def test_it_refuses_a_delay_that_is_negative_or_endless(delay_s: object) -> None:
    with pytest.raises(UserError) as refusal:
        Topology(spoilt(link("cloud", "edge", delay_s=delay_s)))
    assert str(refusal.value) == (
        f"link 'cloud' - 'edge': delay_s={delay_s!r} must be a finite number that is not negative; "
        "leave it out for the scenario's default"
    )


@pytest.mark.parametrize("position_m", [3.0, (1.0,), (1.0, 2.0, 3.0), (0.0, math.nan), (math.inf, 0.0), "12", (1, "2")])
def test_it_refuses_a_place_that_is_not_two_numbers(position_m: object) -> None:
    with pytest.raises(UserError) as refusal:
        Topology(spoilt(node("edge", position_m=position_m)))
    assert str(refusal.value) == (
        f"node 'edge': position_m={position_m!r} must be two finite numbers, x and y in metres; "
        "leave it out for no position"
    )


@pytest.mark.parametrize("form", [nx.DiGraph, nx.MultiGraph])
def test_it_refuses_one_way_and_parallel_links(form: type[Graph[str]]) -> None:
    with pytest.raises(UserError) as refusal:
        Topology(form(plant()))
    assert str(refusal.value) == (
        f"the topology is a {form.__name__}: links go both ways and join two nodes once; use networkx.Graph"
    )


@given(topologies(), st.data())
def test_one_more_wire_makes_no_network_wrong(topology: Topology, data: st.DataObject) -> None:
    graph = nx.Graph(topology.graph)
    apart = list(nx.non_edges(topology.infrastructure))
    assume(apart)
    graph.add_edge(*data.draw(st.sampled_from(apart)))
    assert Topology(graph).sensors == topology.sensors


@given(topologies(), st.data())
def test_a_wire_may_be_missing_only_if_there_is_another_way(topology: Topology, data: st.DataObject) -> None:
    graph = nx.Graph(topology.graph)
    a, b = data.draw(st.sampled_from(list(topology.infrastructure.edges)))
    graph.remove_edge(a, b)
    if nx.has_path(graph, a, b):
        assert Topology(graph).sensors == topology.sensors
        return
    with pytest.raises(UserError, match=" has no way to the cloud ") as refusal:
        Topology(graph)
    lost = set(graph) - nx.node_connected_component(graph, topology.cloud)
    if sensors := [sensor for sensor in topology.sensors if sensor in lost]:
        assert str(refusal.value).startswith(f"sensor {sensors[0]!r} ")
    others = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    assert any(f" {name!r}{others} has no way" in str(refusal.value) for name in lost)
