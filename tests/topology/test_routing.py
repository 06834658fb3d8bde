"""Messages take as few wires as possible, the same ones both ways, and another way only when theirs is closed."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from some_topologies import names, plant, topologies, wired

from fedsim.errors import UserError
from fedsim.topology import graph as graph_module
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.routing import next_hops

Graph = nx.Graph  # of texts


def follow(towards: dict[str, str], source: str, target: str) -> list[str]:
    way = [source]
    while way[-1] != target:
        way.append(towards[way[-1]])
    return way


def by_the_rule(graph: Graph[str], source: str, target: str) -> list[str]:
    """The way that the rule names, found by listing all shortest ways."""
    order = {name: place for place, name in enumerate(graph)}
    ways = nx.all_shortest_paths(wired(graph), source, target)
    return min(ways, key=lambda way: sorted((order[name] for name in way), reverse=True))


def two_nodes(topology: Topology, data: st.DataObject) -> tuple[str, str]:
    nodes = st.sampled_from(list(topology.graph))
    return data.draw(nodes), data.draw(nodes)


# Routes


@given(topologies(), st.data())
def test_a_route_is_a_shortest_path(topology: Topology, data: st.DataObject) -> None:
    source, target = two_nodes(topology, data)
    route = topology.route(source, target)
    assert (route[0], route[-1]) == (source, target)
    assert all(topology.graph.has_edge(a, b) for a, b in pairwise(route))
    assert len(route) - 1 == nx.shortest_path_length(topology.graph, source, target)


@given(topologies(), st.data())
def test_no_sensor_relays(topology: Topology, data: st.DataObject) -> None:
    route = topology.route(*two_nodes(topology, data))
    assert not set(route[1:-1]) & set(topology.sensors)


@given(topologies(), st.data())
def test_of_several_shortest_paths_the_one_whose_last_listed_nodes_come_first_is_taken(
    topology: Topology, data: st.DataObject
) -> None:
    source, target = two_nodes(topology, data)
    assume(source not in topology.sensors and target not in topology.sensors)
    assert list(topology.route(source, target)) == by_the_rule(topology.graph, source, target)


MESHES = {
    "grid": nx.grid_2d_graph(3, 4),
    "ladder": nx.ladder_graph(6),
    "ring": nx.cycle_graph(8),
    "two layers": nx.complete_bipartite_graph(3, 5),
}


@given(st.sampled_from(sorted(MESHES)), st.data())
def test_it_is_the_one_in_meshes_of_many_shortest_paths_too(mesh: str, data: st.DataObject) -> None:
    plain = MESHES[mesh]
    graph: Graph[str] = nx.Graph()
    graph.add_nodes_from(map(str, data.draw(st.permutations(list(plain)))), kind=NodeKind.EDGE)
    graph.add_edges_from((str(a), str(b)) for a, b in plain.edges)
    target = data.draw(st.sampled_from(list(graph)))
    towards = next_hops(graph, target)
    for node in towards:
        assert follow(towards, node, target) == by_the_rule(graph, node, target)


@given(topologies(), st.data())
def test_the_way_back_is_the_way_there_backwards(topology: Topology, data: st.DataObject) -> None:
    source, target = two_nodes(topology, data)
    assert topology.route(target, source) == topology.route(source, target)[::-1]


@given(topologies(), st.data())
def test_each_part_of_a_route_is_the_route_between_its_ends(topology: Topology, data: st.DataObject) -> None:
    route = topology.route(*two_nodes(topology, data))
    first = data.draw(st.integers(0, len(route) - 1))
    last = data.draw(st.integers(first, len(route) - 1))
    assert topology.route(route[first], route[last]) == route[first : last + 1]


@given(topologies(), st.data())
def test_what_was_asked_before_does_not_matter(topology: Topology, data: st.DataObject) -> None:
    for _ in range(5):
        source, target = two_nodes(topology, data)
        assert topology.route(source, target) == Topology(topology.graph).route(source, target)


def test_routes_of_the_plant() -> None:
    topology = Topology(plant())
    assert topology.route("cam", "cloud") == ("cam", "bs-1", "edge", "cloud")
    assert topology.route("cam", "bs-2") == ("cam", "bs-1", "edge", "bs-2")  # turns round below the cloud
    assert topology.route("edge", "bs-2") == ("edge", "bs-2")
    assert topology.route("cam", "cam") == ("cam",)
    assert topology.route("cloud", "cloud") == ("cloud",)


def test_two_sensors_of_a_cell_meet_at_their_station() -> None:
    graph = plant()
    graph.add_node("agv", kind="sensor")
    graph.add_edge("agv", "bs-1")
    assert Topology(graph).route("cam", "agv") == ("cam", "bs-1", "agv")


def test_base_stations_may_relay() -> None:
    graph = plant()
    graph.add_node("bs-3", kind="base_station")
    graph.add_edge("bs-3", "bs-2")
    assert Topology(graph).route("bs-3", "cloud") == ("bs-3", "bs-2", "edge", "cloud")


@pytest.mark.parametrize("turned", [False, True], ids=["to the server", "from the server"])
def test_the_ways_of_all_sensors_to_one_server_cost_one_search(turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = plant()
    for number in range(50):
        graph.add_node(f"bs-1{number}", kind="base_station")
        graph.add_node(f"cam-{number}", kind="sensor")
        graph.add_edges_from([("edge", f"bs-1{number}"), (f"bs-1{number}", f"cam-{number}")])
    topology = Topology(graph)
    searches = []

    def counted(*arguments: Graph[str] | str) -> dict[str, str]:
        searches.append(arguments)
        return next_hops(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(graph_module, "next_hops", counted)
    for sensor in topology.sensors:
        topology.route(*(("edge", sensor) if turned else (sensor, "edge")))
    assert len(searches) == 1


@pytest.mark.parametrize("ends", [("cma", "cloud"), ("cloud", "cma"), ("cma", "cma")])
def test_a_route_of_an_unknown_node_gets_a_hand(ends: tuple[str, str]) -> None:
    with pytest.raises(UserError, match="^the topology has no node 'cma'; did you mean 'cam'\\?$"):
        Topology(plant()).route(*ends)


# The next hop


@given(topologies(), st.data())
def test_who_goes_from_hop_to_hop_goes_the_route(topology: Topology, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(list(topology.infrastructure)))
    towards = topology.towards(target)
    assert {*towards, target} == set(topology.infrastructure)
    assert towards == next_hops(topology.graph, target) == next_hops(topology.infrastructure, target)
    for node in towards:
        assert tuple(follow(dict(towards), node, target)) == topology.route(node, target)


def test_what_is_kept_cannot_be_changed() -> None:
    topology = Topology(plant())
    with pytest.raises(TypeError):
        topology.towards("cloud")["bs-1"] = "bs-2"  # type: ignore[index]


def test_a_sensor_is_nobodys_way() -> None:
    topology = Topology(plant())
    for ask in (lambda: topology.towards("cam"), lambda: next_hops(topology.graph, "cam")):
        with pytest.raises(UserError, match="^'cam' is of kind sensor, and only others relay; name its base station$"):
            ask()


def test_an_unknown_target_gets_a_hand() -> None:
    topology = Topology(plant())
    for ask in (lambda: topology.towards("clod"), lambda: next_hops(topology.infrastructure, "clod")):
        with pytest.raises(UserError, match="^the topology has no node 'clod'; did you mean 'cloud'\\?$"):
            ask()


# What does not matter


def rebuilt(graph: Graph[str], links: Sequence[tuple[str, str]]) -> Graph[str]:
    copy: Graph[str] = nx.Graph()
    copy.add_nodes_from(graph.nodes(data=True))
    copy.add_edges_from(links)
    return copy


@given(topologies(), st.data())
def test_the_order_of_the_links_does_not_matter(topology: Topology, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(list(topology.infrastructure)))
    links = [link if data.draw(st.booleans()) else link[::-1] for link in topology.graph.edges]
    graph = rebuilt(topology.graph, data.draw(st.permutations(links)))
    assert next_hops(graph, target) == topology.towards(target)


@given(topologies(), st.data())
def test_rates_places_and_the_kinds_of_what_relays_do_not_matter(topology: Topology, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(list(topology.infrastructure)))
    graph = nx.Graph(topology.infrastructure)
    for name in graph:
        kind = data.draw(st.sampled_from(["base_station", "edge", "cloud"]))
        graph.add_node(name, kind=kind, position_m=(data.draw(st.integers(-9, 9)), 0), colour=data.draw(names))
    for a, b in graph.edges:
        graph.edges[a, b].update(rate_bps=data.draw(st.floats(1, 1e9)), delay_s=data.draw(st.floats(0, 1)))
    assert next_hops(graph, target) == topology.towards(target)


@given(topologies(), st.data())
def test_names_do_not_matter(topology: Topology, data: st.DataObject) -> None:
    count = len(topology.graph)
    called = data.draw(st.lists(names, min_size=count, max_size=count, unique=True))
    new = dict(zip(topology.graph, called, strict=True))
    relabelled = Topology(nx.relabel_nodes(nx.Graph(topology.graph), new))
    source, target = two_nodes(topology, data)
    assert relabelled.route(new[source], new[target]) == tuple(new[name] for name in topology.route(source, target))


def test_the_seed_of_pythons_hashes_does_not_matter() -> None:
    code = (
        "import networkx as nx; from fedsim.topology.routing import next_hops; "
        "graph = nx.relabel_nodes(nx.grid_2d_graph(6, 6), str); nx.set_node_attributes(graph, 'edge', 'kind'); "
        "print(next_hops(graph, '(2, 3)', [('(2, 2)', '(2, 3)')], {'(4, 4)', '(5, 0)'}))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert "'(0, 0)'" in printed.pop()


# Outages


Outage = tuple[Topology, str, list[tuple[str, str]], list[str]]


@st.composite
def outages(draw: st.DrawFn) -> Outage:
    """A network, a target, and what is closed: wires (in either direction) and nodes."""
    topology = draw(topologies())
    target = draw(st.sampled_from(list(topology.infrastructure)))
    links = draw(st.lists(st.sampled_from(list(topology.graph.edges)), unique=True))
    nodes = draw(st.lists(st.sampled_from(list(topology.graph)), unique=True))
    return topology, target, [link if draw(st.booleans()) else link[::-1] for link in links], nodes


@given(outages())
def test_what_is_closed_is_as_if_it_were_not_there(
    outage: Outage,
) -> None:
    topology, target, links, nodes = outage
    left = wired(topology.graph)
    left.remove_edges_from(links)
    left.remove_nodes_from(nodes)
    towards = next_hops(topology.graph, target, closed_links=links, closed_nodes=nodes)
    assert towards == next_hops(topology.infrastructure, target, frozenset(map(frozenset, links)), frozenset(nodes))
    if target in nodes:
        assert towards == {}
        return
    assert {*towards, target} == nx.node_connected_component(left, target)
    for node in towards:
        assert follow(towards, node, target) == by_the_rule(left, node, target)


@given(outages())
def test_an_outage_elsewhere_changes_no_way(outage: Outage) -> None:
    topology, target, links, nodes = outage
    assume(target not in nodes)
    towards = next_hops(topology.graph, target, closed_links=links, closed_nodes=nodes)
    for node in topology.towards(target):
        way = topology.route(node, target)
        if not set(way) & set(nodes) and not {*pairwise(way), *pairwise(way[::-1])} & set(links):
            assert tuple(follow(towards, node, target)) == way


def test_a_broken_ring_is_gone_round_the_other_way() -> None:
    ring: Graph[str] = nx.cycle_graph(["cloud", "a", "b", "c", "d"])
    nx.set_node_attributes(ring, NodeKind.EDGE, "kind")
    assert next_hops(ring, "cloud") == {"a": "cloud", "b": "a", "c": "d", "d": "cloud"}
    broken = next_hops(ring, "cloud", closed_links=[("a", "cloud")])
    assert follow(broken, "a", "cloud") == ["a", "b", "c", "d", "cloud"]
    assert next_hops(ring, "cloud", closed_links=[("a", "cloud"), ("c", "b")]) == {"c": "d", "d": "cloud"}


def test_a_spare_server_stands_by_when_it_is_listed_last() -> None:
    graph: Graph[str] = nx.Graph()
    for name in ("cloud", "main", "hall", "spare"):
        graph.add_node(name, kind=NodeKind.EDGE)
    graph.add_edges_from([("hall", "spare"), ("spare", "cloud"), ("hall", "main"), ("main", "cloud")])
    assert next_hops(graph, "cloud")["hall"] == "main"
    assert next_hops(graph, "cloud", closed_nodes=["main"]) == {"spare": "cloud", "hall": "spare"}


def test_a_long_ring_costs_memory_for_its_nodes_and_not_for_their_squares() -> None:
    ring = nx.cycle_graph([f"hall-{number}" for number in range(20_000)])  # with one node that has two ways
    nx.set_node_attributes(ring, "edge", "kind")
    tracemalloc.start()
    try:
        towards = next_hops(ring, "hall-0")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert towards["hall-10000"] == "hall-9999"
    assert peak_bytes < 20e6  # a number with a bit for each node, at each node, is 25 MB and more
