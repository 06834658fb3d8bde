"""One network drawn into one Axes: cells as discs, wires as lines, nodes as markers, names where there is room.

A load is the colour of a channel: of a disc, or of its left half (uplink) and its right half (downlink); of each half
of a wire, which shows what the node at its end sends. Sensors are drawn one by one where there is room for all of them,
and where they have hues each has its own; else their cell is divided among classes or hues.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection, PolyCollection
from matplotlib.patches import Circle, Patch, Wedge
from matplotlib.ticker import MaxNLocator

from fedsim.topology.graph import NodeKind
from fedsim.viz.topology_map.detail import (
    CASING,
    FAILING,
    IDLE,
    NO_AIR,
    OWN_CHANNELS,
    PLAIN_DISC,
    PLAIN_WIRE,
    Colour,
    Detail,
    Scale,
    class_look,
    crosses,
    markers,
)
from fedsim.viz.topology_map.hues import UNCOVERED, Hues
from fedsim.viz.topology_map.lines import halves, wire_line
from fedsim.viz.topology_map.loads import Loads
from fedsim.viz.topology_map.names import write_names
from fedsim.viz.topology_map.places import Disc, Net, Places, Point, Points

__all__ = ["draw_network"]

_MOST_BENT = 40  # nodes, for all wires to be bent around them
_CASED = 1.0  # points: a line as wide as this has an outline, for the pale ones to be seen
_MOST_ARROWS = 120  # wires
_HUED = 1.4  # a marker whose colour is to be seen, in others
_KILOMETRES = 8e3  # a longer axis is in kilometres


def draw_network(
    ax: Axes,
    net: Net,
    places: Places,
    loads: Loads | None = None,
    scale: Scale | None = None,
    hues: Hues | None = None,
) -> Axes:
    """Draw *net* at its *places*, with *loads* in the colours of *scale*, or with sensors in *hues*, or without."""
    detail = Detail.of(places)
    if hues is not None and detail.sensor is not None:
        detail = replace(detail, sensor=_HUED * detail.sensor)
    drawing = _Drawing(ax, net, places, detail, loads, scale, hues)
    drawing.frame()
    drawing.discs()
    lines = drawing.wires()
    drawing.nodes()
    write_names(ax, net, places, drawing.detail, lines)
    return ax


@dataclass(frozen=True)
class _Drawing:
    ax: Axes
    net: Net
    places: Places
    detail: Detail
    loads: Loads | None
    scale: Scale | None
    hues: Hues | None

    def frame(self) -> None:
        """The limits, and the ground's axes."""
        ax, places = self.ax, self.places
        left, bottom, right, top = places.frame
        ax.set(xlim=(left, right), ylim=(bottom, top))
        ax.set_aspect("equal")
        ax.grid(visible=False)
        if not places.in_metres:
            ax.set_axis_off()
            return
        highest = top if places.divider is None else places.divider
        unit, name = (1e3, "km") if right - left > _KILOMETRES else (1.0, "m")
        for axis, low, high in ((ax.xaxis, left, right), (ax.yaxis, bottom, highest)):
            marks = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(low / unit, high / unit)
            spare = 0.04 * (high - low)  # so that the marks of two panels do not touch
            inside = [mark * unit for mark in marks if low + spare <= mark * unit <= high - spare]
            axis.set_ticks(inside, [f"{mark / unit:g}".replace("-", "\N{MINUS SIGN}") for mark in inside])
        ax.tick_params(labelsize=8.0)
        ax.set_xlabel(f"x, {name}")
        ax.set_ylabel(f"y, {name}", y=(highest - bottom) / 2 / (top - bottom))
        ax.spines["left"].set_bounds(bottom, highest)
        if places.divider is not None:
            ax.axhline(places.divider, color="#c3c8ce", linewidth=0.8, linestyle="dotted", zorder=0.5)

    def discs(self) -> None:
        """The cells: large ones below the wires, small ones above; hatched where nothing can be full."""
        for zorder, wants_large in ((1.0, True), (3.0, False)):
            shared: list[Patch] = []
            own: list[Patch] = []
            colours: list[Colour] = []
            for station, disc in self.places.discs.items():
                if self.detail.is_large(disc.radius / self.places.point) is not wants_large:
                    continue
                if self.detail.sensor is None and self.loads is None and (self.hues or len(self.net.class_sizes) > 1):
                    self._cake(station, disc, zorder)
                    continue
                loads = self.loads.air[station] if self.loads else (None,)
                parts = _channels(self.places.nodes[station], disc.radius, len(loads))
                for load, part in zip(loads, parts, strict=True):
                    if load is not None and math.isnan(load):
                        own.append(part)
                    else:
                        shared.append(part)
                        colours.append(self.scale.colour(load) if self.scale else PLAIN_DISC)
            self._patches(shared, colours, zorder)
            self._patches(own, [IDLE], zorder, hatch=OWN_CHANNELS)

    def wires(self) -> list[Points]:
        """Lines, each half in its own colour, with gaps if they will fail; those that end inside a disc lie above."""
        lines = []
        drawn: dict[tuple[float, bool], list[tuple[Points, Colour]]] = {}
        for a, b in self.net.wires.edges:
            start, end = self.places.nodes[a], self.places.nodes[b]
            line = wire_line(start, end, self._obstacles(a, b), clear=1.2 * self.detail.node * self.places.point)
            lines.append(line)
            length = float(np.linalg.norm(np.subtract(start, end)))
            from_a, from_b, above = self._hidden(a, b, length)
            parts = halves(line, from_a, from_b, gap=0.0)
            if parts is not None:
                colours = (self._sent(a, b), self._sent(b, a))
                kind = 4.0 if above else 2.0, frozenset((a, b)) in self.net.failing
                drawn.setdefault(kind, []).extend(zip(parts, colours, strict=True))
        arrows = self.loads is not None and self.net.wires.number_of_edges() <= _MOST_ARROWS
        for (zorder, failing), coloured in drawn.items():
            self._lines(coloured, zorder, failing=failing)
            if arrows:
                self._arrows(coloured, zorder)
        return lines

    def nodes(self) -> None:
        """A marker for each node that is drawn."""
        detail = self.detail
        if detail.sensor is not None:
            spots = np.vstack([disc.sensors for disc in self.places.discs.values()])
            names = [name for disc in self.places.discs.values() for name in disc.names]
            classes = np.array([self.net.device_classes[name] for name in names])
            steps = np.array([self.hues.steps[name] if self.hues else 0 for name in names])
            if (lost := steps == UNCOVERED).any():
                crosses(self.ax, spots[lost], detail.sensor)
            for number, device_class in enumerate(self.net.class_sizes):
                own = (classes == device_class) & ~lost
                marker, colour = class_look(number, coloured=self.loads is None)
                hues = [self.hues.colour(step) for step in steps[own].tolist()] if self.hues else colour
                markers(self.ax, spots[own], NodeKind.SENSOR, detail.sensor, (marker, hues))
        sizes = {NodeKind.BASE_STATION: detail.station, NodeKind.EDGE: detail.node, NodeKind.CLOUD: detail.cloud}
        for kind, size in sizes.items():
            shown = [name for name in self.net.of_kind(kind) if size is not None or name not in self.places.discs]
            if shown:
                markers(self.ax, np.array([self.places.nodes[name] for name in shown]), kind, size or detail.node)

    def _cake(self, station: str, disc: Disc, zorder: float) -> None:
        """A disc with a piece for each class of devices, or hue, as large as its part of the cell's sensors."""
        number_of = {device_class: number for number, device_class in enumerate(self.net.class_sizes)}
        hues, classes = self.hues, self.net.device_classes
        held = Counter(hues.piece(name) if hues else number_of[classes[name]] for name in disc.names)
        pieces: list[Patch] = []
        end = 90.0
        for _, count in sorted(held.items()):
            begin, end = end, end + 360.0 * count / len(disc.names)
            pieces.append(Wedge(self.places.nodes[station], disc.radius, begin, end))
        colours = [hues.colour(number) if hues else class_look(number)[1] for number in sorted(held)]
        self._patches(pieces, colours, zorder)
        if hues and UNCOVERED in held:
            self._patches(pieces[:1], colours, zorder, hatch=NO_AIR)

    def _patches(self, patches: list[Patch], colours: list[Colour], zorder: float, hatch: str | None = None) -> None:
        width = 0.25 * self.detail.wire
        collection = PatchCollection(
            patches, facecolors=colours, edgecolors=CASING, linewidths=width, zorder=zorder, hatch=hatch
        )
        self.ax.add_collection(collection, autolim=False)

    def _sent(self, sender: str, receiver: str) -> Colour:
        if self.loads is None or self.scale is None:
            return PLAIN_WIRE
        return self.scale.colour(self.loads.wires[sender, receiver])

    def _obstacles(self, a: str, b: str) -> Points:
        """What a wire is bent around: in large networks only one along a layer."""
        nodes = self.places.nodes
        along_a_layer = not self.places.in_metres and nodes[a][1] == nodes[b][1]
        if len(nodes) > _MOST_BENT and not along_a_layer:
            return np.empty((0, 2))
        return np.array([spot for name, spot in nodes.items() if name not in (a, b)]).reshape(-1, 2)

    def _hidden(self, a: str, b: str, length: float) -> tuple[float, float, bool]:
        """What the ends' own marks hide of a line, and whether it is drawn over discs, as they would hide all of it."""
        markers = [0.5 * self.detail.size(self.net.kinds[name]) * self.places.point for name in (a, b)]
        discs = [self.places.discs[name].radius if name in self.places.discs else 0.0 for name in (a, b)]
        from_a, from_b = map(max, markers, discs)
        if self.detail.is_large(max(discs) / self.places.point) or from_a + from_b > 0.7 * length:
            return markers[0], markers[1], True
        return from_a, from_b, False

    def _lines(self, drawn: list[tuple[Points, Colour]], zorder: float, *, failing: bool) -> None:
        lines, width = [line for line, _ in drawn], (self.detail.wire if self.loads else 0.6 * self.detail.wire)
        if self.loads is not None and width >= _CASED:
            casing = LineCollection(lines, colors=CASING, linewidths=1.35 * width, zorder=zorder, capstyle="butt")
            self.ax.add_collection(casing, autolim=False)
        colours = [colour for _, colour in drawn]
        collection = LineCollection(lines, colors=colours, linewidths=width, zorder=zorder + 0.1, capstyle="butt")
        collection.set_linestyle(FAILING if failing else "solid")
        self.ax.add_collection(collection, autolim=False)

    def _arrows(self, drawn: list[tuple[Points, Colour]], zorder: float) -> None:
        """Triangles in the middle of wires, which point away from the sender."""
        long = 3.2 * self.detail.wire * self.places.point
        shapes = list(_arrow_heads([line for line, _ in drawn], long))
        colours = [colour for _, colour in drawn]
        collection = PolyCollection(
            shapes, facecolors=colours, edgecolors=CASING, linewidths=0.3 * self.detail.wire, zorder=zorder + 0.2
        )
        self.ax.add_collection(collection, autolim=False)


def _channels(centre: Point, radius: float, channels: int) -> list[Patch]:
    """A disc, or its left and its right half."""
    if channels == 1:
        return [Circle(centre, radius)]
    return [Wedge(centre, radius, 90, 270), Wedge(centre, radius, 270, 450)]


def _arrow_heads(lines: list[Points], long: float) -> Iterator[Points]:
    for line in lines:
        tip, before = line[-1], line[-2]
        along = (tip - before) / np.linalg.norm(tip - before)
        across = np.array([-along[1], along[0]])
        yield np.array([tip, tip - long * along + 0.45 * long * across, tip - long * along - 0.45 * long * across])
