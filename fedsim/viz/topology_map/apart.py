"""Nodes that would hide each other are moved apart, and it is noticed where that no longer helps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from fedsim.topology.kinds import NodeKind
from fedsim.viz.topology_map.lines import distances
from fedsim.viz.topology_map.places import Box, Net, Point

__all__ = ["is_legible", "moved_apart"]

_ORDER = (NodeKind.BASE_STATION, NodeKind.EDGE, NodeKind.CLOUD)  # who comes first stays in place
_RINGS = 50
_MOST_LEFT = 0.25  # part of all positions, from which every node was moved
_MOST_CROSSING = 0.3  # part of all wires


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
