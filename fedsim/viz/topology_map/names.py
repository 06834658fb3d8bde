"""The names of nodes, where there is room for them, and how many sensors a cell has that does not show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from fedsim.topology.kinds import NodeKind
from fedsim.viz.style import plain
from fedsim.viz.topology_map.colours import DARK
from fedsim.viz.topology_map.detail import Detail
from fedsim.viz.topology_map.labels import Board, Marks, Wish, legible, shortened
from fedsim.viz.topology_map.lines import spaced
from fedsim.viz.topology_map.places import Box, Net, Places, Point, Points

__all__ = ["write_names"]

_MOST = 60  # nodes of a kind that have names
_MOST_SENSORS = 12
_WORTHWHILE = 0.6  # part of a kind that has room for its names: else none has one
_FONT = 7.5
_SENSOR_FONT = 6.5
_SIDES = {  # with what the next best one costs
    NodeKind.CLOUD: ("above right left corners below", 1.5),
    NodeKind.EDGE: ("right left below above corners", 1.5),
    NodeKind.BASE_STATION: ("below above right left corners", 20.0),
}
_SENSOR_SIDES = ("below above right left corners", 1.5)


def write_names(ax: Axes, net: Net, places: Places, detail: Detail, lines: Sequence[Points]) -> None:
    """Write the names of clouds, edge servers, base stations and sensors beside them, or of none of a kind.

    A name does not repeat what it shares with the name, if that is written, of the next node on the way to the cloud:
    ``hall-3/station`` is ``station`` beside ``hall-3/edge``. *lines* are those of the wires, which names avoid.
    """
    left, bottom, _, _ = places.frame
    on_lines = [spaced(line, 3.0 * places.point) for line in lines] if len(places.nodes) <= 3 * _MOST else []
    points = (np.vstack([np.empty((0, 2)), *on_lines]) - (left, bottom)) / places.point
    board = Board(_frame(places), _marks(net, places, detail), _sensors(places, detail), points)
    written: set[str] = set()
    for wishes in _wishes(net, places, detail, written):
        labels = {name: label for name, wish in wishes.items() if (label := board.place(wish)) is not None}
        if len(labels) < _WORTHWHILE * len(wishes):
            continue
        written.update(labels)
        for label in labels.values():
            text = ax.text(
                left + label.x * places.point,
                bottom + label.y * places.point,
                plain(legible(label.text)),
                ha=label.across,
                va="center",
                fontsize=label.font_size,
                linespacing=1.1,
                color=DARK,
                zorder=9.0,
            )
            if label.on_colour:
                text.set_bbox({"boxstyle": "square,pad=0.1", "facecolor": "white", "alpha": 0.8, "linewidth": 0.0})
            else:
                text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])


def sensors(count: int) -> str:
    """How many, in words."""
    return "1 sensor" if count == 1 else f"{count:,} sensors"


def _wishes(net: Net, places: Places, detail: Detail, written: Set[str]) -> Iterator[dict[str, Wish]]:
    """What to write beside each node, by kinds and hops to the cloud, when those before are *written*."""
    for kind in _SIDES:
        names = net.of_kind(kind)
        for hops in sorted({net.hops[name] for name in names}) if len(names) <= _MOST else ():
            yield {name: _node(name, net, places, detail, written) for name in names if net.hops[name] == hops}
    if detail.sensor is not None and sum(map(len, net.cells.values())) <= _MOST_SENSORS:
        yield {
            name: Wish(
                shortened(_own_part(name, station if station in written else None)),
                _points(places, (spot[0], spot[1])),
                detail.sensor / 2,
                _SENSOR_FONT,
                *_SENSOR_SIDES,
                on_colour=True,
            )
            for station, disc in places.discs.items()
            for name, spot in zip(disc.names, disc.sensors, strict=True)
        }


def _node(name: str, net: Net, places: Places, detail: Detail, written: Set[str]) -> Wish:
    above = min(net.wires[name], key=lambda other: net.hops[other], default=name)
    is_below = net.hops[above] < net.hops[name] and above in written
    text = shortened(_own_part(name, above if is_below else None))
    radius, on_colour = detail.size(net.kinds[name]) / 2, False
    if name in places.discs:
        disc = places.discs[name]
        on_colour = detail.is_large(disc.radius / places.point)
        if not on_colour:
            radius = disc.radius / places.point
        if detail.sensor is None:
            text += "\n" + sensors(len(disc.names))
    return Wish(text, _points(places, places.nodes[name]), radius, _FONT, *_SIDES[net.kinds[name]], on_colour)


def _own_part(name: str, above: str | None) -> str:
    """*name* without the path that it shares with the name *above* it.

    >>> _own_part("hall-3/station", "hall-3/edge"), _own_part("hall-3/station", "hall-3"), _own_part("hall-3", "cloud")
    ('station', 'station', 'hall-3')
    """
    if above is None:
        return name
    for path in (f"{above}/", above[: above.rfind("/") + 1]):
        if path and name.startswith(path) and name != path:
            return name[len(path) :]
    return name


def _marks(net: Net, places: Places, detail: Detail) -> Marks:
    """Where the nodes are; large discs are the ground on which texts may stand."""
    markers = [detail.size(net.kinds[name]) / 2 for name in places.nodes]
    discs = {name: disc.radius / places.point for name, disc in places.discs.items()}
    small = {name: radius for name, radius in discs.items() if not detail.is_large(radius)}
    return Marks(
        np.array([_points(places, spot) for spot in places.nodes.values()]),
        np.array(markers),
        np.array([max(marker, small.get(name, 0.0)) for name, marker in zip(places.nodes, markers, strict=True)]),
    )


def _sensors(places: Places, detail: Detail) -> Iterator[Box]:
    """Where sensors are drawn."""
    if detail.sensor is None:
        return
    radius = detail.sensor / 2
    for disc in places.discs.values():
        for spot in disc.sensors:
            x, y = _points(places, (spot[0], spot[1]))
            yield x - radius, y - radius, x + radius, y + radius


def _points(places: Places, spot: Point) -> Point:
    """A place in typographic points from the lower left."""
    return (spot[0] - places.frame[0]) / places.point, (spot[1] - places.frame[1]) / places.point


def _frame(places: Places) -> Box:
    left, bottom, right, top = places.frame
    return 0.0, 0.0, (right - left) / places.point, (top - bottom) / places.point
