"""Nodes in place, as their positions say, on flat ground; those without a position in rows above.

The rows are sorted by hops, the clouds on top. Leaves out background maps and heights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import groupby

import numpy as np

from fedsim.topology.graph import NodeKind
from fedsim.viz.topology_map.lines import distances
from fedsim.viz.topology_map.places import MARGIN, TALLEST, Box, Disc, Net, Places, Point, sunflower

__all__ = ["is_legible", "moved_apart", "on_the_ground"]

_FLATTEST = 0.35  # height of a frame at least, in widths
_ROW = 46.0  # of nodes without a position, in typographic points
_APART = (7.5, 26.0)  # two nodes that would hide each other, in typographic points
_AROUND = 44.0  # radius of a cell that a node steps out of, in typographic points
_RIM = 2.5  # by which a cell's disc is larger than it reaches, in typographic points
_MARK = 12.0  # from the frame to the middle of a node that was moved, in typographic points
_ORDER = (NodeKind.BASE_STATION, NodeKind.EDGE, NodeKind.CLOUD)  # who comes first stays in place
_RINGS = 50
_MOST_LEFT = 0.25  # part of all positions, from which every node was moved
_MOST_CROSSING = 0.3  # part of all wires


def on_the_ground(net: Net, width: float) -> Places | None:
    """Lay out a network with two different positions at least in a frame of *width* typographic points.

    None when the nodes would hide each other, or wires run over nodes that they do not join: when they stand in a few
    groups that are far apart, or all in a line.
    """
    left, bottom, right, top = _bounds(net)
    inside = (width - 2 * MARGIN, TALLEST * width - 2 * MARGIN)
    point = max((right - left) / inside[0], (top - bottom) / inside[1])
    height = max(_FLATTEST * width, (top - bottom) / point + 2 * MARGIN)
    west, south = (left + right - width * point) / 2, (bottom + top - height * point) / 2
    rows = list(_rows_without_position(net, columns=max(1, int(width / _ROW))))
    divider = south + height * point
    north = divider + len(rows) * _ROW * point

    room = _room((right - left) / point, (top - bottom) / point, len(net.positions))
    apart = min(_APART[1], max(_APART[0], 0.4 * room))
    mark = _MARK * point
    ground = (west + mark, south + mark, west + width * point - mark, divider - mark)
    nodes = moved_apart(net, apart * point, _AROUND * point, ground)
    if not is_legible(net, nodes, clear=0.2 * apart * point):
        return None
    for number, row in enumerate(rows):
        y = north - (number + 0.5) * _ROW * point
        if len(row) == 1:
            nodes[row[0]] = (min(max(_beside(net, row[0]), left), right), y)
        else:
            nodes.update({name: (west + (i + 0.5) / len(row) * width * point, y) for i, name in enumerate(row)})
    smallest = 0.48 * apart * point
    return Places(
        nodes,
        {station: _disc(net, station, nodes[station], smallest, point) for station in net.cells},
        (west, south, west + width * point, north),
        point,
        room,
        in_metres=True,
        divider=divider if rows else None,
        moved=sum(nodes[name] != position for name, position in net.positions.items()),
        enlarged=any(0.0 < reach < smallest for reach in net.reach_m.values()),
    )


def _bounds(net: Net) -> Box:
    """Left, bottom, right and top of all positions and cells, in metres."""
    corners = [*net.positions.values(), *net.sensor_positions.values()]
    for station, reach in net.reach_m.items():
        if station in net.positions:
            x, y = net.positions[station]
            corners += [(x - reach, y - reach), (x + reach, y + reach)]
    (left, bottom), (right, top) = np.min(corners, axis=0), np.max(corners, axis=0)
    return float(left), float(bottom), float(right), float(top)


def _room(wide: float, high: float, nodes: int) -> float:
    """How far nodes are apart if they are spread evenly over a field, or along it when it is narrow."""
    return max(math.sqrt(wide * high / max(1, nodes)), max(wide, high) / max(1, nodes))


def _rows_without_position(net: Net, columns: int) -> Iterator[list[str]]:
    """From the top: equally many hops share a row, as far as they fit, from left to right as their neighbours stand."""

    def hops(name: str) -> int:
        return net.hops[name]

    for _, layer in groupby(sorted((name for name in net.kinds if name not in net.positions), key=hops), key=hops):
        names = sorted(layer, key=lambda name: _beside(net, name))
        for start in range(0, len(names), columns):
            yield names[start : start + columns]


def _beside(net: Net, name: str) -> float:
    """The mean x of a node's neighbours with positions, else of all that have one."""
    near = [net.positions[other][0] for other in net.wires[name] if other in net.positions]
    return float(np.mean(near or [x for x, _ in (*net.positions.values(), *net.sensor_positions.values())]))


def _disc(net: Net, station: str, centre: Point, smallest: float, point: float) -> Disc:
    sensors = net.cells[station]
    reach = net.reach_m[station]
    radius = max(reach + min(_RIM * point, 0.15 * reach), smallest)
    spots = sunflower(centre, len(sensors), 0.45 * radius, 0.85 * radius)
    for index, sensor in enumerate(sensors):
        spots[index] = net.sensor_positions.get(sensor, spots[index])
    return Disc(radius, tuple(sensors), spots)


def moved_apart(net: Net, apart: float, largest: float, frame: Box) -> dict[str, Point]:
    """The positions; who would stand on another node steps aside, upwards first, to the nearest free place in *frame*.

    It steps out of a base station's cell, unless that has more than the *largest* radius. All lengths are in metres.
    """
    cells = {
        net.positions[station]: reach
        for station, reach in net.reach_m.items()
        if station in net.positions and reach <= largest
    }
    left, bottom, right, top = frame
    nodes: dict[str, Point] = {}
    taken: dict[tuple[int, int], list[Point]] = {}  # by squares of a grid

    def is_free(spot: Point, distance: float) -> bool:
        column, row = math.floor(spot[0] / apart), math.floor(spot[1] / apart)
        near = (other for i in (-1, 0, 1) for j in (-1, 0, 1) for other in taken.get((column + i, row + j), ()))
        return all(math.dist(spot, other) >= distance for other in near)

    def free_place(position: Point) -> Point:
        if is_free(position, 0.5 * apart):
            return position
        step = max(apart, cells.get(position, 0.0) + 0.7 * apart)
        for x, y in _spiral(position, step):
            if left <= x <= right and bottom <= y <= top and is_free((x, y), 0.99 * apart):
                return x, y
        return position

    for name in (name for kind in _ORDER for name in net.of_kind(kind) if name in net.positions):
        spot = nodes[name] = free_place(net.positions[name])
        taken.setdefault((math.floor(spot[0] / apart), math.floor(spot[1] / apart)), []).append(spot)
    return nodes


def is_legible(net: Net, nodes: Mapping[str, Point], clear: float) -> bool:
    """Whether few of the *nodes* had to give way to nodes at other positions, and few wires run over nodes.

    A wire does when it comes nearer than *clear* to one that it does not join.
    """
    in_place = {position for name, position in net.positions.items() if nodes[name] == position}
    positions = set(net.positions.values())
    names = list(nodes)
    number = {name: index for index, name in enumerate(names)}
    spots = np.array([nodes[name] for name in names])
    wires = [(a, b) for a, b in net.wires.edges if a in nodes and b in nodes]
    crossing = 0
    for a, b in wires:
        gaps = distances(spots, np.array(nodes[a]), np.array(nodes[b]))
        gaps[[number[a], number[b]]] = math.inf
        crossing += bool(gaps.min() < clear)
    left = len(positions - in_place)
    return left <= _MOST_LEFT * len(positions) and crossing <= _MOST_CROSSING * len(wires)


def _spiral(position: Point, step: float) -> Iterator[Point]:
    """Places around a position, nearer ones first; in each ring upwards, then to both sides in turn."""
    x, y = position
    for ring in range(1, _RINGS + 1):
        for number in range(6 * ring):
            turn = (number + 1) // 2 * (-1) ** number / (6 * ring)
            angle = math.pi / 2 + 2 * math.pi * turn
            yield x + ring * step * math.cos(angle), y + ring * step * math.sin(angle)
