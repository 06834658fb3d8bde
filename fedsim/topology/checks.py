"""A network that a simulation can trust: what `Topology` refuses, each with the value, the rule and the way out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import networkx as nx

from fedsim.errors import Misfit, UserError, nearest
from fedsim.topology.kinds import NodeKind

__all__ = ["known_kind", "of_kind", "only_cloud", "parents_towards", "refuse_misplaced_sensors", "tidy"]

KINDS = {str(kind): kind for kind in NodeKind}


def tidy(graph: nx.Graph[str]) -> nx.Graph[str]:
    """A copy of *graph* with exactly the attributes that fedsim knows, absent ones as None.

    Raises `UserError` for directed and parallel links, links from a node to itself, and attributes out of range.
    """
    if graph.is_directed() or graph.is_multigraph():
        raise UserError(
            f"the topology is a {type(graph).__name__}: links go both ways and join two nodes once; use networkx.Graph"
        )
    copy: nx.Graph[str] = nx.Graph()
    for name, attributes in graph.nodes(data=True):
        copy.add_node(name, **_node(name, attributes))
    for a, b, attributes in graph.edges(data=True):
        copy.add_edge(a, b, **_link(a, b, attributes))
    return copy


def of_kind(kind: NodeKind, graph: nx.Graph[str]) -> list[str]:
    """The nodes of *kind*, in the graph's order."""
    return [name for name, node in graph.nodes(data=True) if node["kind"] == kind]


def only_cloud(graph: nx.Graph[str]) -> str:
    """The cloud. Raises `UserError` when there is none, or more than one."""
    clouds = of_kind(NodeKind.CLOUD, graph)
    if not clouds:
        raise UserError("no node is of kind 'cloud', and exactly one must be: it holds the global model; add one")
    if len(clouds) > 1:
        raise Misfit(
            f"{len(clouds)} nodes are of kind 'cloud' ({_some(clouds)}), and exactly one must be: "
            "it holds the global model; make the others 'edge'",
            "nodes",
            clouds[1],
        )
    return clouds[0]


def refuse_misplaced_sensors(graph: nx.Graph[str]) -> None:
    """Raise `UserError` unless there are sensors, each linked to one base station, by air, and to nothing else."""
    sensors = of_kind(NodeKind.SENSOR, graph)
    if not sensors:
        raise UserError("no node is of kind 'sensor', and at least one must be: sensors hold the data; add one")
    for sensor in sensors:
        neighbours = list(graph[sensor])
        if not neighbours:
            problem = f"sensor {sensor!r} is linked to nothing and must be to one base station; attach it to one"
            raise Misfit(problem, "nodes", sensor)
        if len(neighbours) > 1:
            raise Misfit(
                f"sensor {sensor!r} is linked to {len(neighbours)} nodes ({_some(neighbours)}) and must be "
                "to one base station only; keep one link",
                "nodes",
                sensor,
            )
        [station] = neighbours
        kind = graph.nodes[station]["kind"]
        if kind != NodeKind.BASE_STATION:
            raise Misfit(
                f"sensor {sensor!r} is linked to {station!r}, which is of kind {kind}, and must be to a base station; "
                "put a node of kind 'base_station' between them",
                "nodes",
                sensor,
            )
        _refuse_wire_attributes(sensor, station, graph[sensor][station])


def parents_towards(cloud: str, graph: nx.Graph[str]) -> dict[str, str]:
    """For every node but the cloud, the next node on the only way to *cloud*.

    Raises `UserError` that names a node without a way to the cloud, or a cycle.
    """
    parents: dict[str, str] = dict(nx.bfs_predecessors(graph, cloud))
    lost = [name for name in graph if name not in parents and name != cloud]
    if lost:
        raise _no_way_to_cloud(lost, cloud, graph)
    if graph.number_of_edges() > len(parents):  # a connected graph is a tree when it has one link fewer than nodes
        cycle = [edge[0] for edge in nx.find_cycle(graph, cloud)]
        raise Misfit(
            f"the links {' - '.join([*cycle, cycle[0]])} form a cycle, and two nodes must be joined by one way only; "
            "remove one link",
            "links",
        )
    return parents


def known_kind(name: str, kind: object) -> NodeKind:
    """*kind* as the `NodeKind` of the node *name*. Raises `UserError` when it is None or no kind."""
    choices = ", ".join(KINDS)
    if kind is None:
        raise UserError(f"node {name!r} has no kind, and must have one of {choices}; give it the attribute kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UserError(f"node {name!r}: kind={kind!r} must be one of {choices}{nearest(str(kind), KINDS)}")
    return KINDS[kind]


def _node(name: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise UserError(f"a node is called {name!r}, and a name must be text that can be printed; rename it")
    kind = known_kind(name, attributes.get("kind"))
    device = attributes.get("device")
    if device is not None and (not isinstance(device, str) or not device):
        raise UserError(f"node {name!r}: device={device!r} must be the name of a device class; leave it out for none")
    return {"kind": kind, "position_m": _position(name, attributes.get("position_m")), "device": device}


def _position(name: str, position_m: Any) -> tuple[float, float] | None:
    if position_m is None:
        return None
    two = isinstance(position_m, (tuple, list)) and len(position_m) == 2
    if not two or not all(_is_number(value) and math.isfinite(value) for value in position_m):
        raise UserError(
            f"node {name!r}: position_m={position_m!r} must be two finite numbers, x and y in metres; "
            "leave it out for no position"
        )
    x, y = position_m
    return float(x), float(y)


def _link(a: str, b: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    if a == b:
        raise Misfit(f"{a!r} is linked to itself, and a link must join two nodes; remove it", "links")
    rate_bps, delay_s = attributes.get("rate_bps"), attributes.get("delay_s")
    if rate_bps is not None and not (_is_number(rate_bps) and rate_bps > 0):
        raise UserError(
            f"link {a!r} - {b!r}: rate_bps={rate_bps!r} must be a positive number (infinity is one); "
            "leave it out for the scenario's default"
        )
    if delay_s is not None and not (_is_number(delay_s) and 0 <= delay_s < math.inf):
        raise UserError(
            f"link {a!r} - {b!r}: delay_s={delay_s!r} must be a finite number that is not negative; "
            "leave it out for the scenario's default"
        )
    return {
        "rate_bps": None if rate_bps is None else float(rate_bps),
        "delay_s": None if delay_s is None else float(delay_s),
    }


def _refuse_wire_attributes(sensor: str, station: str, link: Mapping[str, float | None]) -> None:
    for attribute, value in link.items():
        if value is not None:
            raise Misfit(
                f"link {sensor!r} - {station!r} is air: {attribute}={value!r} belongs to wires, "
                "because a cell's radio sets rate and delay; remove it and describe the radio in the scenario",
                "nodes",
                sensor,
            )


def _no_way_to_cloud(lost: list[str], cloud: str, graph: nx.Graph[str]) -> Misfit:
    sensors = set(of_kind(NodeKind.SENSOR, graph))
    name = next((name for name in lost if name in sensors), lost[0])
    island = nx.node_connected_component(graph, name)
    ends = [node for node in lost if node in island and node not in sensors]
    others = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    return Misfit(
        f"{graph.nodes[name]['kind']} {name!r}{others} has no way to the cloud {cloud!r}, and must have one; "
        f"link {_some(ends)} to a node that has",
        "nodes",
        name,
    )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _some(names: list[str], most: int = 3) -> str:
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
