"""Which way a message takes: over as few wires as possible, and between two nodes always over the same ones.

**The rule.** Of all ways between two nodes, those with the fewest wires count. Of several such ways, the one whose
last-listed node comes earliest in the graph's order is taken; where two share that node, the next-to-last one decides,
and so on. So what is listed first is preferred, and what is listed last stands by.

The rule gives each node a cost of 2 to the power of its place in the order, and takes the way with the lowest sum.
Therefore there is one way between two nodes, the way back is the way there reversed, each part of a way is itself the
way between its ends, and neither names, attributes nor the order of the links matter.

Leaves out rates, delays and traffic (a fast detour never beats a slow direct wire), and sending over several ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise

import networkx as nx

from fedsim.errors import UserError, nearest
from fedsim.topology.kinds import NodeKind

__all__ = ["next_hops"]


def next_hops(
    graph: nx.Graph[str],
    target: str,
    closed_links: Iterable[Collection[str]] = (),
    closed_nodes: Collection[str] = (),
) -> dict[str, str]:
    """For every node that can reach *target*, the next node on its way there; *target* itself is not among them.

    Sensors never relay and are left out, and so is whoever has no way because of *closed_links* (pairs of nodes, in
    either order) and *closed_nodes*. Costs time proportional to the nodes and links of *graph*, sensors included: hand
    in `Topology.infrastructure` where it is called often.

    Raises `UserError` when *target* is a sensor, or no node.

    >>> ring = nx.cycle_graph(["a", "b", "c", "d"])
    >>> nx.set_node_attributes(ring, "edge", "kind")
    >>> next_hops(ring, "a")  # from c it is as far over d as over b, which is listed before
    {'b': 'a', 'd': 'a', 'c': 'b'}
    >>> next_hops(ring, "a", closed_links=[("b", "a")])
    {'d': 'a', 'c': 'd', 'b': 'c'}
    >>> next_hops(ring, "a", closed_nodes=["b"])
    {'d': 'a', 'c': 'd'}
    """
    if target not in graph:
        raise UserError(f"the topology has no node {target!r}{nearest(target, graph)}")
    if graph.nodes[target]["kind"] == NodeKind.SENSOR:
        raise UserError(f"{target!r} is of kind sensor, and only others relay; name its base station")
    relays = [name for name, node in graph.nodes(data=True) if node["kind"] != NodeKind.SENSOR]
    order = {name: place for place, name in enumerate(relays) if name not in closed_nodes}
    if target not in order:
        return {}
    closed = {frozenset(link) for link in closed_links}
    neighbours = dict(graph.adjacency())
    towards: dict[str, str] = {}
    wires = {target: 0}
    nearest_first = [target]
    costs = {target: 0}

    def cost(node: str) -> int:
        """That of the way from *node*, which is asked for only when two ways of the same length compete."""
        if node not in costs:
            way = [node]
            while way[-1] not in costs:
                way.append(towards[way[-1]])
            for nearer, next_one in pairwise(reversed(way)):
                costs[next_one] = costs[nearer] + (1 << order[next_one])
        return costs[node]

    for node in nearest_first:  # which grows while it is read
        farther = wires[node] + 1
        for neighbour in neighbours[node]:
            if neighbour not in order or (closed and frozenset((node, neighbour)) in closed):
                continue
            if neighbour not in wires:
                wires[neighbour] = farther
                towards[neighbour] = node
                nearest_first.append(neighbour)
            elif wires[neighbour] == farther and cost(node) < cost(towards[neighbour]):
                towards[neighbour] = node
    return towards
