"""A network that a simulation can trust: what `Topology` refuses, each with the value, the rule and the way out."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from numbers import Real
from typing import Any

import networkx as nx

from fedsim.errors import Misfit, UserError, nearest, some

__all__ = [
    "NodeKind",
    "checked_link",
    "checked_node",
    "of_kind",
    "refuse_islands",
    "sensors_in_their_cells",
    "some_clouds",
]


class NodeKind(StrEnum):
    """What a node of the network is."""

    SENSOR = "sensor"
    """A device that holds data and trains: a client."""
    BASE_STATION = "base_station"
    """The fixed end of the air: it and its sensors are one cell."""
    EDGE = "edge"
    """A server near the sensors, such as one in each factory."""
    CLOUD = "cloud"
    """A data centre. The first one holds the global model, unless the scenario says otherwise; others only relay."""


KINDS = {str(kind): kind for kind in NodeKind}


# -- one node, one link -----------------------------------------------------------------------------------------------


def checked_node(name: str, kind: object, position_m: Any, device: object) -> dict[str, Any]:
    """A node's attributes. Raises `UserError` for a name or a device class that is no text, a wrong kind or place."""
    if not isinstance(name, str) or not name or not name.isprintable():
        raise UserError(f"a node is called {name!r}, and a name must be text that can be printed; rename it")
    known = kind if type(kind) is NodeKind else _known_kind(name, kind)
    if device is not None and (not isinstance(device, str) or not device):
        raise UserError(f"node {name!r}: device={device!r} must be the name of a device class; leave it out for none")
    return {"kind": known, "position_m": _position(name, position_m), "device": device}


def checked_link(a: str, b: str, rate_bps: Any, delay_s: Any) -> dict[str, float | None]:
    """A link's attributes. Raises `UserError` for a link from a node to itself, and numbers out of range."""
    if a == b:
        raise Misfit(f"{a!r} is linked to itself, and a link must join two nodes; remove it", "links")
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


def _known_kind(name: str, kind: object) -> NodeKind:
    """*kind* as the `NodeKind` of the node *name*. Raises `UserError` when it is None or no kind."""
    choices = ", ".join(KINDS)
    if kind is None:
        raise UserError(f"node {name!r} has no kind, and must have one of {choices}; give it the attribute kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UserError(f"node {name!r}: kind={kind!r} must be one of {choices}{nearest(str(kind), KINDS)}")
    return KINDS[kind]


def _position(name: str, position_m: Any) -> tuple[float, float] | None:
    if position_m is None:
        return None
    if isinstance(position_m, (tuple, list)) and len(position_m) == 2:
        x, y = position_m
        if type(x) is type(y) is float and type(position_m) is tuple and math.isfinite(x) and math.isfinite(y):
            return position_m
        if _is_number(x) and _is_number(y) and math.isfinite(x) and math.isfinite(y):
            return float(x), float(y)
    raise UserError(
        f"node {name!r}: position_m={position_m!r} must be two finite numbers, x and y in metres; "
        "leave it out for no position"
    )


def _is_number(value: object) -> bool:
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


# -- the whole network ------------------------------------------------------------------------------------------------


def of_kind(kind: NodeKind, graph: nx.Graph[str]) -> tuple[str, ...]:
    """The nodes of *kind*, in the graph's order."""
    return tuple(name for name, node in graph.nodes(data=True) if node["kind"] == kind)


def some_clouds(graph: nx.Graph[str]) -> tuple[str, ...]:
    """The clouds, in the graph's order. Raises `UserError` when there is none."""
    clouds = of_kind(NodeKind.CLOUD, graph)
    if not clouds:
        raise UserError("no node is of kind 'cloud', and at least one must be: it holds the global model; add one")
    return clouds


def sensors_in_their_cells(graph: nx.Graph[str]) -> dict[str, str]:
    """The sensors, in the graph's order, each with its base station.

    Raises `UserError` unless there are some, each linked to one base station, by air, and to nothing else.
    """
    sensors = of_kind(NodeKind.SENSOR, graph)
    if not sensors:
        raise UserError("no node is of kind 'sensor', and at least one must be: sensors hold the data; add one")
    stations = frozenset(of_kind(NodeKind.BASE_STATION, graph))
    neighbours = dict(graph.adjacency())
    cells = {}
    for sensor in sensors:
        links = neighbours[sensor]
        if len(links) != 1 or not stations.issuperset(links):
            raise _misplaced(sensor, list(links), graph)
        [(station, link)] = links.items()
        if link["rate_bps"] is not None or link["delay_s"] is not None:
            raise _no_wire(sensor, station, link)
        cells[sensor] = station
    return cells


def refuse_islands(graph: nx.Graph[str], infrastructure: nx.Graph[str], cloud: str, connected: Collection[str]) -> None:
    """Raise `UserError` that names a node without a way to *cloud*: *connected* are those of *infrastructure* with one.

    The sensors have to be in their cells already.
    """
    ends = [name for name in infrastructure if name != cloud and name not in connected]
    if not ends:
        return
    cut_off = frozenset(ends)
    lost = [name for name in graph if name in cut_off or not cut_off.isdisjoint(_cell(name, graph))]
    name = next((name for name in lost if name not in cut_off), lost[0])  # a sensor, if there is one
    island = nx.node_connected_component(graph, name)
    others = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
    raise Misfit(
        f"{graph.nodes[name]['kind']} {name!r}{others} has no way to the cloud {cloud!r}, and must have one; "
        f"link {some([end for end in ends if end in island])} to a node that has",
        "nodes",
        name,
    )


def _cell(name: str, graph: nx.Graph[str]) -> Iterable[str]:
    """The base station of a sensor, and nothing for other nodes."""
    return graph[name] if graph.nodes[name]["kind"] == NodeKind.SENSOR else ()


def _misplaced(sensor: str, neighbours: list[str], graph: nx.Graph[str]) -> Misfit:
    if not neighbours:
        problem = f"sensor {sensor!r} is linked to nothing and must be to one base station; attach it to one"
    elif len(neighbours) > 1:
        problem = (
            f"sensor {sensor!r} is linked to {len(neighbours)} nodes ({some(neighbours)}) and must be "
            "to one base station only; keep one link"
        )
    else:
        problem = (
            f"sensor {sensor!r} is linked to {neighbours[0]!r}, which is of kind "
            f"{graph.nodes[neighbours[0]]['kind']}, and must be to a base station; "
            "put a node of kind 'base_station' between them"
        )
    return Misfit(problem, "nodes", sensor)


def _no_wire(sensor: str, station: str, link: Mapping[str, float | None]) -> Misfit:
    attribute, value = next((attribute, value) for attribute, value in link.items() if value is not None)
    return Misfit(
        f"link {sensor!r} - {station!r} is air: {attribute}={value!r} belongs to wires, "
        "because a cell's radio sets rate and delay; remove it and describe the radio in the scenario",
        "nodes",
        sensor,
    )
