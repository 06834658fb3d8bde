"""Nodes without positions, in columns and rows: the clouds on top, below each node those that are one hop farther.

A network too wide for that is wrapped: what hangs off a node fills a block below it, shelf by shelf, in the order of
the topology. Nothing is left to chance: equal networks have equal places. Wires that close a cycle have no influence.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import networkx as nx

from fedsim.topology.graph import NodeKind
from fedsim.viz.topology_map.places import MARGIN, TALLEST, Disc, Net, Places, sunflower

__all__ = ["in_layers", "layered"]

Cell = tuple[float, float]
"""Column and row, from the upper left."""

_SIDE_BY_SIDE = 28.0  # a slot, if nothing has to be wrapped then; typographic points, as all lengths here
_SLOTS = (64.0, 52.0, 44.0, 38.0, 32.0, 28.0, 24.0, 20.0, 17.0, 14.0, 12.0, 10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0)
_ROW = 88.0  # from one layer to the next, where there is room
_BELOW_CLOUDS = 40.0  # to the next row, at least
_LARGEST_DISC = 32.0
_NAME = 30.0  # room for it below the lowest discs


def in_layers(net: Net, width: float) -> Places:
    """Lay out *net* in a frame of *width* typographic points, which are the drawing units."""
    inside, high = width - 2 * MARGIN, TALLEST * width - 2 * MARGIN
    clouds = net.of_kind(NodeKind.CLOUD)
    for slot in (_SIDE_BY_SIDE, *_SLOTS):
        cells = layered(net.wires, clouds, columns=max(1, int(inside / slot)))
        columns, rows = (max(steps) for steps in zip(*cells.values(), strict=True))
        unwrapped = rows == max(net.hops.values())
        if rows * slot <= high and (unwrapped or slot != _SIDE_BY_SIDE):
            break
    across = min(2 * _ROW, inside / columns) if columns else inside
    down = min(_ROW if unwrapped else 1.3 * across, high / rows) if rows else _ROW
    room = min(across, down)
    radius = min(0.42 * room, _LARGEST_DISC)
    bottom = max(MARGIN, radius + _NAME)
    below_clouds = max(0.0, _BELOW_CLOUDS - down) if rows else 0.0
    left, top = (width - columns * across) / 2, bottom + rows * down + below_clouds
    nodes = {
        name: (left + column * across, top - row * down - (below_clouds if row else 0.0))
        for name, (column, row) in cells.items()
    }
    discs = {
        station: Disc(radius, tuple(sensors), sunflower(nodes[station], len(sensors), 0.5 * radius, 0.85 * radius))
        for station, sensors in net.cells.items()
    }
    return Places(nodes, discs, (0.0, 0.0, width, top + MARGIN), point=1.0, room=room)


def layered(wires: nx.Graph[str], clouds: Sequence[str], columns: int) -> dict[str, Cell]:
    """The column and row of each node of *wires*, all of which have a way to one of *clouds*.

    When at most *columns* nodes have nobody below them, rows are hops from the nearest cloud; else blocks are wrapped
    so that no more columns are used, if possible. No two nodes have the same column and row.

    >>> layered(nx.Graph([("cloud", "a"), ("cloud", "b"), ("b", "c"), ("b", "d")]), ["cloud"], columns=9)
    {'cloud': (1.0, 0.0), 'a': (0.0, 1.0), 'b': (1.5, 1.0), 'c': (1.0, 2.0), 'd': (2.0, 2.0)}
    """
    below = _below(wires, clouds)
    leaves = sum(not nodes for nodes in below.values())
    sizes: dict[str, tuple[int, int]] = {}  # columns and rows of the block of a node and all below it
    shelves: dict[str, list[tuple[int, int]]] = {}  # where in it the blocks of those below it begin
    for node in reversed(below):
        blocks = [sizes[other] for other in below[node]]
        widest = leaves if leaves <= columns else columns if node in clouds else _square(blocks, columns)
        shelves[node], (wide, high) = _shelves(blocks, widest)
        sizes[node] = (max(1, wide), high + 1)
    starts, _ = _shelves([sizes[cloud] for cloud in clouds], max(leaves, columns))
    corners = dict(zip(clouds, starts, strict=True))
    for node, others in below.items():
        column, row = corners[node]
        for other, (right, down) in zip(others, shelves[node], strict=True):
            corners[other] = (column + right, row + 1 + down)
    return {node: (column + (sizes[node][0] - 1) / 2, float(row)) for node, (column, row) in corners.items()}


def _below(wires: nx.Graph[str], clouds: Sequence[str]) -> dict[str, list[str]]:
    """Node -> those reached first from it, on the fewest hops from any cloud; the nearest nodes first."""
    below: dict[str, list[str]] = {cloud: [] for cloud in clouds}
    waiting = deque(clouds)
    while waiting:
        node = waiting.popleft()
        for other in wires[node]:
            if other not in below:
                below[other] = []
                below[node].append(other)
                waiting.append(other)
    return below


def _square(blocks: Sequence[tuple[int, int]], columns: int) -> int:
    """Columns on which *blocks* make something like a square, at most *columns* unless one is wider."""
    if not blocks:
        return 1
    area = sum(wide * high for wide, high in blocks)
    return max(max(wide for wide, _ in blocks), min(columns, math.ceil(math.sqrt(area))))


def _shelves(blocks: Sequence[tuple[int, int]], widest: int) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Where *blocks* stand when they are put on shelves from left to right, and the columns and rows that all take."""
    corners: list[tuple[int, int]] = []
    right = top = bottom = most = 0
    for wide, high in blocks:
        if right and right + wide > widest:
            right, top = 0, bottom
        corners.append((right, top))
        right, bottom = right + wide, max(bottom, top + high)
        most = max(most, right)
    return corners, (most, bottom)
