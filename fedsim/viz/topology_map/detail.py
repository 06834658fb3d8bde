"""How large things are drawn, and what is left out where there is little room; the markers of nodes, and all colours.

Those of loads are one scale from idle to full, told apart by the colour-blind and in grey. Its lightness falls evenly,
so that a darker channel is a fuller one: magma, by N. Smith and S. van der Walt, without its ends, of which the one is
too pale for a line and the other as dark as a marker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import ListedColormap, Normalize, to_rgba
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from fedsim.topology.graph import NodeKind
from fedsim.viz.human import scale as unit_of
from fedsim.viz.topology_map.loads import Load, Measured
from fedsim.viz.topology_map.places import Places, Points

__all__ = [
    "CASING",
    "DARK",
    "FAILING",
    "IDLE",
    "LOST",
    "MARKERS",
    "NO_AIR",
    "OWN_CHANNELS",
    "PLAIN_DISC",
    "PLAIN_WIRE",
    "Colour",
    "Detail",
    "Scale",
    "class_look",
    "crosses",
    "markers",
]

Colour = tuple[float, float, float, float]

DARK = "#33383e"
CASING = "#8d949c"
"""Around what may be pale."""
PLAIN_DISC = to_rgba("#e3e8ee")
PLAIN_WIRE = to_rgba("#8d959d")
"""Without loads."""
IDLE = to_rgba("#ffffff")
LOST = "#b3261e"
"""Of a sensor out of coverage."""
OWN_CHANNELS = "/////"
"""The hatch of a disc in which nothing can be full."""
NO_AIR = "xxxxx"
"""The hatch of the part of a disc whose sensors are out of coverage."""
FAILING = (0.0, (2.5, 1.0))
"""The dashes of a wire that will fail, in widths of the line."""
_COLOURS = ListedColormap(colormaps["magma_r"](np.linspace(0.06, 0.86, 256)), name="load")
_STEPS: list[Colour] = [to_rgba(colour) for colour in _COLOURS(np.arange(256))]
_CLOUD = Path(
    np.array(
        [
            *[(-0.6, -0.45), (-1.1, -0.45), (-1.15, 0.2), (-0.68, 0.22), (-0.65, 0.75), (0.05, 0.85), (0.22, 0.45)],
            *[(0.6, 0.65), (0.95, 0.3), (0.78, 0.08), (1.2, 0.0), (1.1, -0.45), (0.7, -0.45), (-0.6, -0.45)],
        ]
    ),
    [Path.MOVETO, *[Path.CURVE4] * 12, Path.CLOSEPOLY],
)
MARKERS: dict[NodeKind, str | Path] = {
    NodeKind.CLOUD: _CLOUD,
    NodeKind.EDGE: "s",
    NodeKind.BASE_STATION: "^",
    NodeKind.SENSOR: "o",
}
_CLASS_MARKERS = "oDvPhX"
_CLASS_COLOURS = ("#ffffff", "#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#0072B2")
_DARKER = 0.6
_MOST_SENSORS = 600  # that are drawn one by one
_SENSOR_AREA = 14.0  # square points that each of them needs
_SMALLEST_STATION = 4.0  # points
_LARGE = 44.0  # points: a disc of a larger radius is the ground on which others stand


class Scale:
    """From all loads of a run to colours."""

    colours = _COLOURS
    """From the lightest to the darkest."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        self._ceiling = measured.ceiling()
        self.norm = Normalize(0.0, self._ceiling)
        """From loads to 0 ... 1."""

    @property
    def label(self) -> str:
        """Of its bar."""
        return f"sent, {self._unit[1]}" if self.measured.quantity == "bytes" else "utilisation, %"

    def marks(self) -> MaxNLocator:
        """Where its bar has marks."""
        return MaxNLocator(nbins=5, steps=[1, 2, 5, 10])

    def text(self, load: float) -> str:
        """A mark of its bar."""
        return f"{load / self._unit[0]:g}"

    @property
    def _unit(self) -> tuple[float, str]:
        return unit_of("bytes", self._ceiling) if self.measured.quantity == "bytes" else (0.01, "%")

    def colour(self, load: Load) -> Colour:
        """White where nothing was sent, grey where nothing can be full."""
        if load is None:
            return IDLE
        if math.isnan(load):
            return PLAIN_WIRE
        return _STEPS[int(min(load / self._ceiling, 1.0) * (len(_STEPS) - 1) + 0.5)]


@dataclass(frozen=True)
class Detail:
    """Diameters and widths in typographic points."""

    sensor: float | None
    """Of a sensor; None when cells stand for theirs."""
    station: float | None
    """Of a base station with sensors; None when its cell stands for it."""
    node: float
    """Of an edge server, and about of others."""
    cloud: float
    wire: float

    @classmethod
    def of(cls, places: Places) -> Detail:
        """What suits a layout."""
        node = min(8.5, max(2.0, 0.17 * places.room))
        radii = [(disc.radius / places.point, len(disc.names)) for disc in places.discs.values()]
        smallest = min(radius for radius, _ in radii)
        area = min(math.pi * radius**2 / sensors for radius, sensors in radii)
        few = sum(sensors for _, sensors in radii) <= _MOST_SENSORS
        each = few and area >= _SENSOR_AREA and smallest >= 2.0 * node
        station = min(node, 0.8 * smallest)
        return cls(
            sensor=min(5.0, max(2.2, 0.4 * math.sqrt(area))) if each else None,
            station=station if station >= _SMALLEST_STATION else None,
            node=node,
            cloud=min(20.0, max(13.0, 2.4 * node)),
            wire=min(2.4, max(0.35, places.room / 26)),
        )

    def size(self, kind: NodeKind) -> float:
        """The diameter of a node that is no sensor, also where it is not drawn."""
        return self.cloud if kind == NodeKind.CLOUD else self.node

    @staticmethod
    def is_large(radius_points: float) -> bool:
        """Whether a disc is the ground on which others stand."""
        return radius_points > _LARGE


def class_look(number: int, *, coloured: bool = True) -> tuple[str, Colour]:
    """The marker and the colour of the class of devices with this *number*, from 0.

    After six, both come again, darker; where colours are loads (not *coloured*), all are white and greys.
    """
    turns, place = divmod(number, len(_CLASS_MARKERS))
    red, green, blue, opacity = to_rgba(_CLASS_COLOURS[place] if coloured else "#ffffff")
    shade = _DARKER**turns
    return _CLASS_MARKERS[place], (shade * red, shade * green, shade * blue, opacity)


def markers(
    ax: Axes, spots: Points, kind: NodeKind, size: float, look: tuple[str, Colour | list[Colour]] | None = None
) -> PathCollection:
    """A marker of *size* points for each of the *spots*; *look* is that of a class of sensors, or of each of them."""
    marker, colour = look or class_look(0)
    return ax.scatter(
        spots[:, 0],
        spots[:, 1],
        s=size**2,
        marker=marker if kind == NodeKind.SENSOR else MARKERS[kind],
        facecolor=colour if kind == NodeKind.SENSOR else DARK,
        edgecolor=DARK if kind == NodeKind.SENSOR else "white",
        linewidth=0.16 * size if kind == NodeKind.SENSOR else min(0.8, 0.1 * size),
        zorder=6.0 if kind == NodeKind.SENSOR else 7.0,
        label=str(kind),
    )


def crosses(ax: Axes, spots: Points, size: float) -> PathCollection:
    """A mark of *size* points for each of the *spots*, where a sensor stands that the air does not reach."""
    return ax.scatter(
        spots[:, 0], spots[:, 1], s=size**2, marker="x", color=LOST, linewidth=0.28 * size, zorder=6.5, label="lost"
    )
