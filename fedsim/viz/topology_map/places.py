"""What a drawing knows of a network, and where it puts each node: no colours, no text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
import numpy.typing as npt

from fedsim.network.faults.settings import ScheduledFault
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import GOLDEN_ANGLE

__all__ = ["MARGIN", "TALLEST", "Box", "Disc", "Net", "Places", "Point", "Points", "sunflower"]

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""
Points = npt.NDArray[np.float64]
"""A row for each point: x, y."""

MARGIN = 34.0
"""Between the frame and the outermost node, in typographic points."""
TALLEST = 1.1
"""Height of a frame at most, in widths."""


class Net:
    """A topology as a drawing sees it: nodes and wires, for each base station its sensors, and what will fail."""

    def __init__(
        self, topology: Topology, faults: Collection[ScheduledFault] = (), default_class: str | None = None
    ) -> None:
        nodes = topology.graph.nodes
        self.wires = topology.infrastructure
        self.kinds: dict[str, NodeKind] = {name: nodes[name]["kind"] for name in self.wires}
        """Of every node that is no sensor."""
        links, ends = {frozenset(fault.link or ()) for fault in faults}, {fault.node for fault in faults}
        self.failing = {wire for wire in map(frozenset, self.wires.edges) if wire in links or wire & ends}
        """Wires, by their two ends, with a planned outage of their own or of one end."""
        self.cells: dict[str, list[str]] = {}
        """Base station -> its sensors; only those that have any."""
        for sensor in topology.sensors:
            self.cells.setdefault(topology.cell_of(sensor), []).append(sensor)
        self.device_classes: dict[str, str] = {
            sensor: nodes[sensor]["device"] or default_class or "other" for sensor in topology.sensors
        }
        """Sensor -> the class of the device; *default_class* where the topology names none."""
        self.sensor_positions: dict[str, Point] = {
            sensor: position for sensor in topology.sensors if (position := nodes[sensor]["position_m"]) is not None
        }
        self.positions: dict[str, Point] = {}
        """In metres. A base station without one stands in the middle of its sensors, if all of them have positions."""
        for name in self.kinds:
            position = nodes[name]["position_m"]
            if position is None and name in self.cells:
                position = self._middle(self.cells[name])
            if position is not None:
                self.positions[name] = position

    def of_kind(self, kind: NodeKind) -> list[str]:
        """The nodes of *kind*, in the order of the topology."""
        return [name for name, its_kind in self.kinds.items() if its_kind == kind]

    @cached_property
    def class_sizes(self) -> dict[str, int]:
        """Class of devices -> how many there are; in the order in which they first come."""
        return dict(Counter(self.device_classes.values()))

    @cached_property
    def reach_m(self) -> dict[str, float]:
        """Base station -> distance to the farthest of its sensors; 0 when no distance is known."""
        return {station: self._reach_m(station) for station in self.cells}

    @cached_property
    def hops(self) -> dict[str, int]:
        """Node -> wires to the nearest cloud."""
        layers = nx.bfs_layers(self.wires, self.of_kind(NodeKind.CLOUD))
        return {name: hops for hops, layer in enumerate(layers) for name in layer}

    def _reach_m(self, station: str) -> float:
        if station not in self.positions:
            return 0.0
        known = [self.sensor_positions[name] for name in self.cells[station] if name in self.sensor_positions]
        return max((math.dist(self.positions[station], position) for position in known), default=0.0)

    def _middle(self, sensors: list[str]) -> Point | None:
        if not all(sensor in self.sensor_positions for sensor in sensors):
            return None
        x, y = np.mean([self.sensor_positions[sensor] for sensor in sensors], axis=0)
        return float(x), float(y)


@dataclass(frozen=True, eq=False)
class Disc:
    """A cell: how far it reaches around its base station, and its sensors in the order of the clients."""

    radius: float
    names: tuple[str, ...]
    sensors: Points
    """Where they stand."""


@dataclass(frozen=True, eq=False)
class Places:
    """A network laid out in a frame, in drawing units: metres or typographic points."""

    nodes: dict[str, Point]
    """Every node that is no sensor."""
    discs: dict[str, Disc]
    """By base station."""
    frame: Box
    point: float
    """Drawing units in a typographic point."""
    room: float
    """From one node to the next, about, in typographic points: what is drawn there must be smaller."""
    in_metres: bool = False
    """Whether drawing units are metres."""
    divider: float | None = None
    """Above this height stand the nodes without a position; None when there are none, or all have none."""
    crowded: bool = False
    """Whether there are positions that are not shown, as nodes would hide each other."""
    moved: int = 0
    """How many nodes are drawn beside their position, where another one stands."""
    enlarged: bool = False
    """Whether a cell is drawn larger than it reaches."""

    @property
    def height_points(self) -> float:
        """Height of the frame in typographic points."""
        return (self.frame[3] - self.frame[1]) / self.point


def sunflower(centre: Point, count: int, inner: float, outer: float) -> Points:
    """*count* places, each with an equal share of the ring between two radii; a few of them on one circle.

    >>> sunflower((0.0, 0.0), 2, inner=1.0, outer=3.0).round(3)
    array([[ 0.,  2.],
           [-0., -2.]])
    """
    number = np.arange(count)
    if count <= 10:
        distance, angle = np.full(count, (inner + outer) / 2), math.pi / 2 + number * (2 * math.pi / max(count, 1))
    else:
        distance = np.sqrt(inner**2 + (outer**2 - inner**2) * (number + 0.5) / count)
        angle = number * GOLDEN_ANGLE
    return np.column_stack([centre[0] + distance * np.cos(angle), centre[1] + distance * np.sin(angle)])
