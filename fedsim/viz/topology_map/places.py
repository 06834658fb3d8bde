"""What a drawing knows of a network, and where it puts each node: in place if that can be read, else in layers.

Nodes without a position stand above the others, the clouds on top. In layers, what hangs off a node fills a block below
it. Lengths are typographic points where nothing else is said. Leaves out background maps and heights.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import networkx as nx
import numpy as np
import numpy.typing as npt

from fedsim.network.faults.settings import ScheduledFault
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import GOLDEN_ANGLE

__all__ = ["LARGE", "MARGIN", "TALLEST", "Net", "Places", "Point", "Points", "counted", "lay_out"]

Point = tuple[float, float]
Points = npt.NDArray[np.float64]
"""A row for each point: x, y."""

LARGE = 44.0
"""A disc of a larger radius is the ground on which others stand."""
MARGIN, TALLEST = 34.0, 1.1
"""Between the frame and the outermost node; height of a frame, in widths at most, but for nodes without a position."""
_ROW, _LAYER = 46.0, 88.0  # from one row of nodes to the next, without a position; and in layers, where there is room
_SLOTS = (28.0, *np.geomspace(64.0, 1.0, 24).tolist())  # of a column; the first if nothing has to be wrapped then
_ORDER = (NodeKind.BASE_STATION, NodeKind.EDGE, NodeKind.CLOUD)  # who comes first stays in place
_ASIDE = [(ring, math.radians(angle)) for ring, angle in product(range(1, 50), (90, 30, 150, 330, 210, 270))]


class Net:
    """A topology as a drawing sees it; devices whose class it does not tell are of the *default_class*.

    Its ``kinds`` are those of the nodes that are no sensors, its ``cells`` the sensors of base stations that have any,
    and ``failing`` are the wires, by their two ends, with a planned outage of their own or of one end.
    """

    def __init__(
        self, topology: Topology, faults: Collection[ScheduledFault] = (), default_class: str | None = None
    ) -> None:
        nodes, self.wires = topology.graph.nodes, topology.infrastructure
        self.kinds: dict[str, NodeKind] = {name: nodes[name]["kind"] for name in self.wires}
        links, ends = {frozenset(fault.link or ()) for fault in faults}, {fault.node for fault in faults}
        self.failing = {wire for wire in map(frozenset, self.wires.edges) if wire in links or wire & ends}
        classes = {sensor: nodes[sensor]["device"] or default_class or "other" for sensor in topology.sensors}
        self.class_sizes = Counter(classes.values())
        numbers = {name: number for number, name in enumerate(self.class_sizes)}
        self.class_of = {sensor: numbers[name] for sensor, name in classes.items()}
        """Sensor -> the number of its class, from 0 in the order of `class_sizes`."""
        self.cells: dict[str, list[str]] = {}
        for sensor in topology.sensors:
            self.cells.setdefault(topology.cell_of(sensor), []).append(sensor)
        self.positions: dict[str, Point] = {n: node["position_m"] for n, node in nodes.items() if node["position_m"]}
        """In metres. A base station without one stands in the middle of its sensors, if all of them have positions."""
        for station, cell in self.cells.items():
            if station not in self.positions and self.positions.keys() >= set(cell):
                x, y = np.mean([self.positions[name] for name in cell], axis=0).tolist()
                self.positions[station] = x, y
        clouds = dict.fromkeys(self.of_kind(NodeKind.CLOUD), 0)
        lengths = nx.multi_source_dijkstra_path_length(self.wires, clouds)
        self.hops = {name: int(hops) for name, hops in (clouds | lengths).items()}
        """Node -> wires to the nearest cloud, the clouds first."""
        nearest = {name: min(self.wires[name], key=self.hops.__getitem__, default=name) for name in self.hops}
        self.above = {name: other for name, other in nearest.items() if self.hops[other] < self.hops[name]}
        """Node -> the next one on its way to a cloud."""

    def of_kind(self, kind: NodeKind) -> list[str]:
        """The nodes of *kind*, in the order of the topology."""
        return [name for name, its_kind in self.kinds.items() if its_kind == kind]


@dataclass(frozen=True, eq=False)
class Places:
    """A network laid out: in metres, if it has a *ground*, the height up to which places are positions, or in points.

    Where each of the *nodes* is that is no sensor, and by base station the *radii* of the discs of cells and where the
    *sensors* are. The *frame* is left, bottom, right and top; *room* are the points from one node to the next, about;
    *notes* are what is to be said about the places; a typographic *point* is so long.
    """

    nodes: dict[str, Point]
    radii: dict[str, float]
    sensors: dict[str, Points]
    frame: tuple[float, float, float, float]
    room: float
    notes: list[str]
    point: float = 1.0
    ground: float | None = None

    @cached_property
    def sizes(self) -> dict[NodeKind, float]:
        """Diameters in points; sensors, and base stations with sensors, have none where cells stand for them."""
        radii = [radius / self.point for radius in self.radii.values()]
        area = min(math.pi * r**2 / len(cell) for r, cell in zip(radii, self.sensors.values(), strict=True))
        node = min(8.5, max(2.0, 0.17 * self.room))
        sizes = {NodeKind.EDGE: node, NodeKind.CLOUD: min(20.0, max(13.0, 2.4 * node))}
        if (station := min(node, 0.8 * min(radii))) >= 4.0:
            sizes[NodeKind.BASE_STATION] = station
        if area >= 14.0 and min(radii) >= 2.0 * node and sum(map(len, self.sensors.values())) <= 600:
            sizes[NodeKind.SENSOR] = min(5.0, 0.4 * math.sqrt(area))
        return sizes


def counted(count: int, noun: str) -> str:
    """How many, in words: 1 sensor, 1,200 sensors."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def lay_out(net: Net, width: float) -> Places:
    """Places in a frame of *width* points: on the ground if positions differ and nodes are seen there."""
    if len(set(net.positions.values())) < 2:
        return _in_layers(net, width, "The nodes have no positions")
    return _on_the_ground(net, width) or _in_layers(net, width, "Where they are, nodes would hide each other or wires")


def _on_the_ground(net: Net, width: float) -> Places | None:
    """Nodes at their positions; None when they would hide each other, or wires run over nodes they do not join."""
    at, reach = net.positions, _reach(net)
    ground = _Ground.around(np.array([*at.values()]), np.array([[reach.get(name, 0.0)] for name in at]), width)
    point = ground.point
    placed = {name: at[name] for kind in _ORDER for name in net.of_kind(kind) if name in at}
    room = ground.room(len(placed))
    apart = min(26.0 * point, max(7.5 * point, 0.4 * room))
    lacking, top = _above_the_ground(net, ground)
    frame = (ground.left, ground.bottom, ground.right, top)
    outer = {at[name]: away if away < LARGE * point else 0.0 for name, away in reach.items()}
    inner = np.array(frame) + 12 * point * np.array([1, 1, -1, -1])
    nodes = _apart(placed | lacking, outer, apart, inner)
    if not _is_legible(net, {name: spot for name, spot in nodes.items() if name in at}, 0.2 * apart):
        return None
    smallest, radii, sensors = 0.48 * apart, {}, {}
    for station, cell in net.cells.items():
        away = reach.get(station, 0.0)
        radii[station] = max(away + min(2.5 * point, 0.15 * away), smallest)
        beside = _around(nodes[station], len(cell), radii[station]).tolist()
        sensors[station] = np.array([at.get(name, spot) for name, spot in zip(cell, beside, strict=True)])
    notes = ["What is above the dotted line has no position."] * bool(lacking)
    notes += ["Small cells are drawn larger than they are."] * any(0.0 < away < smallest for away in reach.values())
    if moved := sum(at[name] != nodes[name] for name in placed):
        subject = "1 node is" if moved == 1 else f"{moved:,} nodes are"
        notes.append(f"{subject} drawn beside the position, where another one stands.")
    return Places(nodes, radii, sensors, frame, room / point, notes, point, ground.top)


def _reach(net: Net) -> dict[str, float]:
    """How far away the sensors of each base station with a position are that have one, too: the farthest."""
    at, reach = net.positions, {}
    for station in (station for station in net.cells if station in at):
        known = (math.dist(at[station], at[name]) for name in net.cells[station] if name in at)
        reach[station] = max(known, default=0.0)
    return reach


@dataclass(frozen=True)
class _Ground:
    """The frame around all positions, in metres; a typographic *point* is so long there."""

    left: float
    bottom: float
    right: float
    top: float
    point: float
    extent: Points
    """Of the positions with the discs around them, without a margin."""

    @classmethod
    def around(cls, spots: Points, reach: Points, width: float) -> _Ground:
        """Spots and how far each one's disc reaches; in *width* points, at most `TALLEST` times as high."""
        low, high = (spots - reach).min(axis=0), (spots + reach).max(axis=0)
        point = float(max((high - low) / (width * np.array([1.0, TALLEST]) - 2 * MARGIN)))
        half = np.maximum((high - low) / 2 + MARGIN * point, width * point * np.array([0.5, 0.175]))
        (left, bottom), (right, top) = ((low + high) / 2 - half).tolist(), ((low + high) / 2 + half).tolist()
        return cls(left, bottom, right, top, point, high - low)

    def room(self, nodes: int) -> float:
        """From one of so many nodes to the next, about."""
        (wide, tall), count = self.extent, max(1, nodes)
        return float(max(math.sqrt(wide * tall / count), wide / count, tall / count))


def _above_the_ground(net: Net, ground: _Ground) -> tuple[dict[str, Point], float]:
    """Nodes without a position, above the middle of those they are wired to, the clouds on top; and the height of all.

    A row for each number of hops.
    """
    at, placed = net.positions, {}
    lacking = {name: hops for name, hops in net.hops.items() if name not in at}
    rows = max(lacking.values(), default=-1) + 1
    for name, hops in lacking.items():
        beside = [at[other] for other in net.wires[name] if other in at] or [*at.values()]
        placed[name] = float(np.mean([x for x, _ in beside])), ground.top + (rows - hops - 0.5) * _ROW * ground.point
    return placed, ground.top + rows * _ROW * ground.point


def _apart(at: Mapping[str, Point], outer: Mapping[Point, float], apart: float, frame: Points) -> dict[str, Point]:
    """Places; who would stand on another one steps aside, upwards first, out of a cell whose *outer* radius is told."""
    taken = np.full((len(at), 2), np.inf)
    for number, spot in enumerate(at.values()):
        taken[number], others = spot, taken[:number]
        if np.linalg.norm(others - spot, axis=1).min(initial=math.inf) < 0.5 * apart:
            step = max(apart, outer.get(spot, 0.0) + 0.7 * apart)
            steps = (np.add(spot, [ring * step * math.cos(a), ring * step * math.sin(a)]) for ring, a in _ASIDE)
            inside = (place for place in steps if (place >= frame[:2]).all() and (place <= frame[2:]).all())
            free = (place for place in inside if np.linalg.norm(others - place, axis=1).min() >= 0.99 * apart)
            taken[number] = next(free, np.array(spot))
    return dict(zip(at, map(tuple, taken.tolist()), strict=True))


def _is_legible(net: Net, nodes: Mapping[str, Point], clear: float) -> bool:
    """Whether few positions were left by all their nodes, and few wires come nearer than *clear* to others' nodes."""
    positions, spots, crossed = {net.positions[name] for name in nodes}, np.array([*nodes.values()]), 0
    left = positions - {spot for name, spot in nodes.items() if net.positions[name] == spot}
    wires = [(nodes[a], nodes[b]) for a, b in net.wires.edges if a in nodes and b in nodes]
    for start, end in wires:
        away, along = spots - start, np.subtract(end, start)
        part = np.clip(away @ along / max(along @ along, 1e-12), 0.0, 1.0)
        near = np.linalg.norm(away - part[:, None] * along, axis=1) < clear
        crossed += int(near.sum()) > 2  # both ends are
    return len(left) <= 0.25 * len(positions) and crossed <= 0.3 * len(wires)


def _around(centre: Point, count: int, radius: float) -> Points:
    """*count* places with equal shares of a disc without its middle; a few of them on one circle."""
    number, few = np.arange(count), count <= 10
    distance = radius * (np.full(count, 0.7) if few else np.sqrt(0.22 + 0.5 * (number + 0.5) / count))
    angle = math.pi / 2 + number * (math.tau / count if few else GOLDEN_ANGLE)
    return np.column_stack([centre[0] + distance * np.cos(angle), centre[1] + distance * np.sin(angle)])


def _in_layers(net: Net, width: float, why: str) -> Places:
    """Rows are hops to the nearest cloud; too wide a network is wrapped."""
    inside, tallest = width - 2 * MARGIN, TALLEST * width - 2 * MARGIN
    below: dict[str | None, list[str]] = {None: [], **{name: [] for name in net.hops}}
    for name in net.hops:
        below[net.above.get(name)].append(name)
    for slot in _SLOTS:
        cells = _blocks(below, max(1, int(inside / slot)))
        columns, rows = (max(steps) for steps in zip(*cells.values(), strict=True))
        unwrapped = rows == max(net.hops.values())
        if rows * slot <= tallest and (unwrapped or slot != _SLOTS[0]):
            break
    across = min(2 * _LAYER, inside / max(columns, 0.5))
    down = min(_LAYER if unwrapped else 1.3 * across, tallest / max(rows, 0.5))
    radius, below_clouds = min(0.42 * min(across, down), 32.0), max(0.0, 40.0 - down)
    left, top = (width - columns * across) / 2, max(MARGIN, radius + 30.0) + rows * down + below_clouds
    nodes = {n: (left + x * across, top - y * down - below_clouds * (y > 0)) for n, (x, y) in cells.items()}
    sensors = {station: _around(nodes[station], len(cell), radius) for station, cell in net.cells.items()}
    radii, note = dict.fromkeys(sensors, radius), f"{why}: each one stands below the next on its way to the cloud."
    return Places(nodes, radii, sensors, (0.0, 0.0, width, top + MARGIN), min(across, down), [note])


def _blocks(below: dict[str | None, list[str]], columns: int) -> dict[str, Point]:
    """Column and row of each node, from the upper left; *below* tells who is under whom, from above, clouds under None.

    When more than *columns* nodes have nobody below them, blocks are wrapped so that no more are used, if possible.
    """
    all_fit = sum(not names for names in below.values()) <= columns
    sizes: dict[str | None, tuple[int, int]] = {}  # columns and rows of the block of a node and all below it
    corners: dict[str | None, tuple[int, int]] = {None: (0, -1)}  # in the block of the node above, until all are known
    for node in reversed(below):
        blocks = [sizes[name] for name in below[node]]
        square = max([math.ceil(math.sqrt(sum(map(math.prod, blocks)))), *(wide for wide, _ in blocks)])
        widest = math.inf if all_fit or node is None else columns if node in below[None] else square
        most, right, top, bottom = 1, 0, 0, 0
        for name, (wide, high) in zip(below[node], blocks, strict=True):
            if right and right + wide > widest:
                right, top = 0, bottom
            corners[name] = right, top + 1
            right, bottom = right + wide, max(bottom, top + high)
            most = max(most, right)
        sizes[node] = most, bottom + 1
    for node, names in below.items():
        corners |= {name: (corners[node][0] + corners[name][0], corners[node][1] + corners[name][1]) for name in names}
    return {node: (column + (sizes[node][0] - 1) / 2, float(row)) for node, (column, row) in corners.items() if node}
