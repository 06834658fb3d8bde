"""Networks to test with: a small one that each test may spoil, and any one that hypothesis can think of."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import networkx as nx
from hypothesis import strategies as st

from fedsim.settings import LARGEST, SMALLEST
from fedsim.topology.graph import NodeKind, Topology

KINDS = {"cloud": "cloud", "edge": "edge", "bs-1": "base_station", "bs-2": "base_station", "cam": "sensor"}
LINKS = [("cloud", "edge"), ("edge", "bs-1"), ("edge", "bs-2"), ("bs-1", "cam")]


def plant() -> nx.Graph[str]:
    """A fresh graph: cloud - edge - two base stations, and one sensor, `cam`, at the first of them."""
    graph: nx.Graph[str] = nx.Graph()
    for name, kind in KINDS.items():
        graph.add_node(name, kind=kind)
    graph.add_edges_from(LINKS)
    return graph


def plant_written_out() -> dict[str, Any]:
    """The same plant as the mapping that the explicit topology takes."""
    nodes: dict[str, Any] = {name: {"kind": kind} for name, kind in KINDS.items()}
    nodes["cam"]["attach"] = "bs-1"
    return {"name": "explicit", "nodes": nodes, "links": [{"between": list(link)} for link in LINKS[:-1]]}


names = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=6)  # all printable
coordinates = st.floats(-LARGEST, LARGEST)
positions = st.none() | st.tuples(coordinates, coordinates)
rates = st.none() | st.just(math.inf) | st.floats(SMALLEST, LARGEST)
delays = st.none() | st.floats(0, LARGEST)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Any connected wires between clouds, edge servers and base stations, which have sensors; all in any order."""
    wired, sensors = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    kinds = ["cloud", "base_station"]
    kinds += [draw(st.sampled_from(["edge", "base_station", "cloud"])) for _ in range(wired - 1)]
    stations = [i for i, kind in enumerate(kinds) if kind == "base_station"]
    called = draw(st.lists(names, min_size=wired + 1 + sensors, max_size=wired + 1 + sensors, unique=True))
    kinds += ["sensor"] * sensors
    wires = [(i, draw(st.integers(0, i - 1))) for i in range(1, wired + 1)]
    redundant = [(i, j) for i in range(wired + 1) for j in range(i) if (i, j) not in wires]
    wires += draw(st.lists(st.sampled_from(redundant), unique=True)) if redundant else []

    graph: nx.Graph[str] = nx.Graph()
    for i in draw(st.permutations(range(len(kinds)))):
        graph.add_node(called[i], kind=kinds[i], position_m=draw(positions), device=draw(st.none() | names))
    for i, j in draw(st.permutations([*wires, *((i, None) for i in range(wired + 1, len(kinds)))])):
        if j is None:
            graph.add_edge(called[i], called[draw(st.sampled_from(stations))])
        else:
            graph.add_edge(called[i], called[j], rate_bps=draw(rates), delay_s=draw(delays))
    return Topology(graph)


def wired(graph: nx.Graph[str]) -> nx.Graph[str]:
    """A copy of *graph* without its sensors, made the plain way."""
    copy = nx.Graph(graph)
    copy.remove_nodes_from([name for name, node in graph.nodes(data=True) if node["kind"] == "sensor"])
    return copy


def kinds(topology: Topology) -> Counter[NodeKind]:
    """How many nodes there are of each kind."""
    return Counter(node["kind"] for _, node in topology.graph.nodes(data=True))


def of_kind(kind: NodeKind, topology: Topology) -> list[str]:
    """The nodes of one kind, in the graph's order."""
    return [name for name, node in topology.graph.nodes(data=True) if node["kind"] == kind]


def places(topology: Topology) -> dict[str, tuple[float, float]]:
    """Where everything but the clouds is."""
    return {name: node["position_m"] for name, node in topology.graph.nodes(data=True) if node["kind"] != "cloud"}
