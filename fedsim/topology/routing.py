"""Which way a message takes: over as few wires as possible, and between two nodes always over the same ones.

**The rule.** Of all ways between two nodes, those with the fewest wires count. Of several such ways, the one whose
last-listed node comes earliest in the graph's order is taken; where two share that node, the next-to-last one decides,
and so on. So what is listed first is preferred, and what is listed last stands by.

The rule gives each node a cost of 2 to the power of its place in the order, and takes the way with the lowest sum.
Therefore there is one way between two nodes, the way back is the way there reversed, each part of a way is itself the
way between its ends, and neither names, attributes nor the order of the links matter.

Two ways of one length are compared by the last-listed node that only one of them has. Jump pointers find it in O(log n)
(E. Myers, "An applicative random-access stack", Information Processing Letters 17, 1983), and no sum is ever made.

Leaves out rates, delays and traffic (a fast detour never beats a slow direct wire), and sending over several ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import networkx as nx

from fedsim.errors import UserError, nearest
from fedsim.topology.checks import NodeKind

__all__ = ["next_hops", "steps_to"]


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
    place = {name: number for number, name in enumerate(relays) if name not in closed_nodes}
    if target not in place:
        return {}
    closed = {frozenset(link) for link in closed_links}
    neighbours = dict(graph.adjacency())
    # from here on a node is its place in the order: lists take far less room than mappings in a large network
    end, nowhere = place[target], -1
    wires, towards = [nowhere] * len(relays), [nowhere] * len(relays)
    jump, latest_before_jump = [end] * len(relays), [nowhere] * len(relays)
    wires[end] = 0
    nearest_first = [end]

    def settle(node: int) -> None:
        """Note a jump along the way of *node*, which is final, so that two ways can be compared in few steps."""
        nearer = towards[node]
        far = jump[nearer]
        farther = jump[far]
        if wires[nearer] - wires[far] == wires[far] - wires[farther]:
            jump[node] = farther
            latest_before_jump[node] = max(node, latest_before_jump[nearer], latest_before_jump[far])
        else:
            jump[node], latest_before_jump[node] = nearer, node

    def goes_first(one: int, other: int) -> bool:
        """Whether the way from *one* is preferred to that from *other*, which is as long."""
        latest = latest_other = nowhere
        while one != other:
            far, passed = jump[one], latest_before_jump[one]
            far_other, passed_other = jump[other], latest_before_jump[other]
            if far == far_other:  # too far: they may have met before
                far, passed, far_other, passed_other = towards[one], one, towards[other], other
            latest, latest_other = max(latest, passed), max(latest_other, passed_other)
            one, other = far, far_other
        return latest < latest_other

    for node in nearest_first:  # which grows while it is read
        if node != end:
            settle(node)
        farther = wires[node] + 1
        name = relays[node]
        for other_name in neighbours[name]:
            other = place.get(other_name)
            if other is None or (closed and frozenset((name, other_name)) in closed):
                continue
            if wires[other] == nowhere:
                wires[other] = farther
                towards[other] = node
                nearest_first.append(other)
            elif wires[other] == farther and goes_first(node, towards[other]):
                towards[other] = node
    return {relays[node]: relays[towards[node]] for node in nearest_first[1:]}


def steps_to(target: str, towards: Mapping[str, str]) -> dict[str, int]:
    """How many wires there are between each node and *target*, when *towards* says the next node on each way."""
    steps = {target: 0}
    for node in towards:
        way = [node]
        while way[-1] not in steps:
            way.append(towards[way[-1]])
        for nearer, farther in zip(way[::-1], way[-2::-1], strict=False):
            steps[farther] = steps[nearer] + 1
    return steps
