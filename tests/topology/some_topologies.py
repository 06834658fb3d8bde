"""Networks to test with: a small one that each test may spoil, and any one that hypothesis can think of."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
from hypothesis import strategies as st

from fedsim.topology.graph import Topology

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
coordinates = st.floats(allow_nan=False, allow_infinity=False)
positions = st.none() | st.tuples(coordinates, coordinates)
rates = st.none() | st.just(math.inf) | st.floats(min_value=0, exclude_min=True)
delays = st.none() | st.floats(min_value=0, allow_infinity=False)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Any tree of wires below a cloud, with sensors at its base stations; nodes and links in any order."""
    wired, sensors = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    kinds = ["cloud", "base_station"] + [draw(st.sampled_from(["edge", "base_station"])) for _ in range(wired - 1)]
    stations = [i for i, kind in enumerate(kinds) if kind == "base_station"]
    called = draw(st.lists(names, min_size=wired + 1 + sensors, max_size=wired + 1 + sensors, unique=True))
    kinds += ["sensor"] * sensors

    graph: nx.Graph[str] = nx.Graph()
    for i in draw(st.permutations(range(len(kinds)))):
        graph.add_node(called[i], kind=kinds[i], position_m=draw(positions), device=draw(st.none() | names))
    for i in draw(st.permutations(range(1, len(kinds)))):
        if kinds[i] == "sensor":
            graph.add_edge(called[i], called[draw(st.sampled_from(stations))])
        else:
            graph.add_edge(called[i], called[draw(st.integers(0, i - 1))], rate_bps=draw(rates), delay_s=draw(delays))
    return Topology(graph)
