"""One network drawn into one Axes: cells as discs, wires as lines, nodes as markers.

A load is the colour of a channel: of a disc, or of its left half (uplink) and its right half (downlink); of each half
of a wire, which shows what the node at its end sends. Sensors are drawn one by one where there is room for all of them,
and where they have hues each has its own; else their cell is divided among classes or hues.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Wedge
from matplotlib.ticker import MaxNLocator
from scipy.spatial.distance import cdist

from fedsim.topology.graph import NodeKind
from fedsim.viz.style import DARK
from fedsim.viz.topology_map.hues import UNCOVERED, Colour, Hues
from fedsim.viz.topology_map.loads import UNSHARED, Measured
from fedsim.viz.topology_map.places import LARGE, Net, Places, Point, Points

__all__ = ["FAILING", "MARKERS", "OUTLINE", "PLAIN_DISC", "Drawing", "bends", "class_look", "curve"]

OUTLINE, PLAIN_DISC, FAILING = "#8d949c", to_rgba("#e3e8ee"), (0.0, (2.5, 1.0))
"""Colours around what may be pale, and of a cell without loads; the dashes of a wire that will fail."""
MARKERS = {NodeKind.CLOUD: ("$\N{CLOUD}$", "cloud"), NodeKind.EDGE: ("s", "edge server")}
MARKERS |= {NodeKind.BASE_STATION: ("^", "base station")}
"""With what the legend calls them."""
_CLASS_COLOURS = ("#ffffff", "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#0072B2")
_BENDS = (0.0, 0.05, -0.05, 0.1, -0.1, 0.16, -0.16, 0.24, -0.24, 0.36, -0.36)  # of the length, sideways


def class_look(number: int, *, coloured: bool = True) -> tuple[str, Colour]:
    """The marker and the colour of the class of devices with this *number*, from 0.

    After six, both come again, darker; where colours are loads (not *coloured*), all are white and greys.
    """
    turns, place = divmod(number, len(_CLASS_COLOURS))
    red, green, blue = (0.6**turns * part for part in to_rgba(_CLASS_COLOURS[place] if coloured else "white")[:3])
    return "oDvPhX"[place], (red, green, blue, 1.0)


def bends(net: Net, places: Places) -> dict[tuple[str, str], float]:
    """By wire: how far its line is from a straight one, in lengths, so that it meets no node that it does not join.

    In large networks only wires along a layer are bent.
    """
    found, spots = dict.fromkeys(net.wires.edges, 0.0), places.nodes
    for a, b in found:
        if len(spots) <= 40 or (places.ground is None and spots[a][1] == spots[b][1]):
            others = np.array([spot for name, spot in spots.items() if name not in (a, b)]).reshape(-1, 2)
            for bend in _BENDS:
                line = curve(spots[a], spots[b], bend, np.linspace(0.0, 1.0, 65))
                if cdist(line, others).min(initial=math.inf) >= 10.0 * places.point:
                    found[a, b] = bend
                    break
    return found


def curve(a: Point, b: Point, bend: float, parts: Points) -> Points:
    """Points at these *parts* of the way from *a* to *b*, which leaves the straight one by *bend* times its length."""
    along, at = np.subtract(b, a), parts[:, None]
    line: Points = a + at * along + 4 * bend * at * (1 - at) * np.array([-along[1], along[0]])
    return line


@dataclass(frozen=True)
class Drawing:
    """A network at its places, with the loads of a *protocol*, or with sensors in *hues*, or without."""

    ax: Axes
    net: Net
    places: Places
    measured: Measured | None = None
    protocol: str = ""
    hues: Hues | None = None

    def draw(self, bent: Mapping[tuple[str, str], float]) -> None:
        """Draw all but names; wires are *bent* as `bends` tells."""
        self._frame()
        self._discs()
        self._wires(bent)
        self._markers()

    def _frame(self) -> None:
        ax, (left, bottom, right, top), ground = self.ax, self.places.frame, self.places.ground
        ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
        ax.grid(visible=False)
        if ground is None:
            ax.set_axis_off()
            return
        unit, name = (1e3, "km") if right - left > 8e3 else (1.0, "m")
        marks = MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10], prune="both")
        for axis, low, high in ((ax.xaxis, left, right), (ax.yaxis, bottom, ground)):
            spare = 0.04 * (high - low)  # so that the marks of two panels do not touch
            axis.set_ticks(marks.tick_values(low + spare, high - spare))
            axis.set_major_formatter(lambda value, _: f"{value / unit:.9g}".replace("-", "\N{MINUS SIGN}"))
        ax.set(xlabel=f"x, {name}", ylabel=f"y, {name}")
        ax.spines["left"].set_bounds(bottom, ground)
        if top > ground:
            ax.axhline(ground, color="#c3c8ce", linewidth=0.8, linestyle="dotted", zorder=0.5)

    def _discs(self) -> None:
        """The cells: large ones below the wires, small ones above."""
        drawn: defaultdict[bool, list[Wedge]] = defaultdict(list)
        for station, radius in sorted(self.places.radii.items(), key=lambda disc: -disc[1]):  # none hides a smaller one
            end = 90.0
            for share, colour in self._pieces(station):
                begin, end = end, end + 360.0 * share
                wedge = Wedge(self.places.nodes[station], radius, begin, end, facecolor=colour, edgecolor=OUTLINE)
                drawn[self._is_large(station)].append(wedge)
        for large, wedges in drawn.items():
            patches = PatchCollection(wedges, match_original=True, zorder=1.0 if large else 3.0)
            patches.set_linewidth(0.25 * self._wire)
            self.ax.add_collection(patches, autolim=False)

    def _wires(self, bent: Mapping[tuple[str, str], float]) -> None:
        """Lines, each half in its own colour, with gaps if they will fail; those that end inside a disc lie above."""
        drawn: defaultdict[tuple[bool, bool], list[tuple[Points, Colour]]] = defaultdict(list)
        spots, measured, width = self.places.nodes, self.measured, self._wire * (1.0 if self.measured else 0.6)
        for (a, b), bend in bent.items():
            hidden = [self.places.radii.get(name, 4.0 * self.places.point) for name in (a, b)]
            length, failing = math.dist(spots[a], spots[b]), frozenset((a, b)) in self.net.failing
            above = self._is_large(a) or self._is_large(b) or sum(hidden) > 0.7 * length
            middle = 0.5 if above else 0.5 + 0.5 * (hidden[0] - hidden[1]) / length  # of what the discs do not hide
            for sender, receiver, start in ((a, b, 0.0), (b, a, 1.0)):
                load = measured.by_protocol[self.protocol].wires[sender, receiver] if measured else math.nan
                line = curve(spots[a], spots[b], bend, np.linspace(start, middle, 17 if bend else 2))
                drawn[above, failing].append((line, measured.colour(load) if measured else UNSHARED))
        for (above, failing), halves in drawn.items():
            lines, colours = zip(*halves, strict=True)
            if measured and width >= 1.0:  # for the pale ones to be seen
                outline = LineCollection(lines, colors=OUTLINE, linewidths=1.35 * width, zorder=4.0 if above else 2.0)
                self.ax.add_collection(outline, autolim=False)
            dashes, level = FAILING if failing else "solid", 4.1 if above else 2.1
            inner = LineCollection(lines, colors=colours, linewidths=width, linestyles=dashes, zorder=level)
            self.ax.add_collection(inner, autolim=False)

    def _markers(self) -> None:
        """A marker for each node that is drawn."""
        places, sizes, hues = self.places, self.places.sizes, self.hues
        if size := sizes.get(NodeKind.SENSOR, 0.0) * (1.4 if hues else 1.0):
            spots, names = np.vstack([*places.sensors.values()]), [n for cell in self.net.cells.values() for n in cell]
            steps = np.array([hues.steps[name] if hues else 0 for name in names])
            numbers, lost = np.array([self.net.class_of[name] for name in names]), steps == UNCOVERED
            style: dict[str, Any] = {"s": size**2, "marker": "x", "linewidth": 0.28 * size, "zorder": 6.5}
            self.ax.scatter(*spots[lost].T, color=Hues.colour(UNCOVERED), label="lost", **style)
            for number in range(len(self.net.class_sizes)):
                own = (numbers == number) & ~lost
                marker, colour = class_look(number, coloured=self.measured is None)
                colours = [hues.colour(step) for step in steps[own].tolist()] if hues else colour
                style |= {"marker": marker, "facecolor": colours, "linewidth": 0.16 * size, "zorder": 6.0}
                self.ax.scatter(*spots[own].T, edgecolor=DARK, label="sensor", **style)
        for kind, (marker, _) in MARKERS.items():
            shown = [name for name in self.net.of_kind(kind) if kind in sizes or name not in self.net.cells]
            spots = np.array([places.nodes[name] for name in shown]).reshape(-1, 2)
            size = sizes.get(kind, sizes[NodeKind.EDGE])
            style = {"s": size**2, "marker": marker, "facecolor": DARK, "linewidth": min(0.8, 0.1 * size)}
            self.ax.scatter(*spots.T, edgecolor="white", zorder=7.0, label=str(kind), **style)

    @property
    def _wire(self) -> float:
        return min(2.4, max(0.35, self.places.room / 26))

    def _is_large(self, name: str) -> bool:
        return self.places.radii.get(name, 0.0) > LARGE * self.places.point

    def _pieces(self, station: str) -> list[tuple[float, Colour]]:
        """Of a disc, from the top to the left: how large a part, and its colour."""
        cell, hues, measured = self.net.cells[station], self.hues, self.measured
        if measured:
            loads = measured.by_protocol[self.protocol].air[station]
            return [(1 / len(loads), measured.colour(load)) for load in loads]
        if NodeKind.SENSOR in self.places.sizes or not (hues or len(self.net.class_sizes) > 1):
            return [(1.0, PLAIN_DISC)]
        held = sorted(Counter(hues.piece(name) if hues else self.net.class_of[name] for name in cell).items())
        return [(count / len(cell), hues.colour(key) if hues else class_look(key)[1]) for key, count in held]
