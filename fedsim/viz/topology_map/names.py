"""The names of nodes, where there is room for them, and how many sensors a cell has that does not show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from fedsim.topology.graph import NodeKind
from fedsim.viz.names import legible, shortened
from fedsim.viz.style import plain
from fedsim.viz.topology_map.detail import DARK, Detail
from fedsim.viz.topology_map.labels import Board, Label, Marks, Wish
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


_Above = Mapping[str, str | None]
"""Node -> the next one on the way to a cloud, if there is one."""
_Writer = Callable[[str, str], Wish]
"""From a node and a text to where that is to be written."""


def write_names(ax: Axes, net: Net, places: Places, detail: Detail, lines: Sequence[Points]) -> None:
    """Write the names of clouds, edge servers, base stations and sensors beside them, or of none of a kind.

    A name does not repeat what it shares with the name, if that is written, of the next node on the way to the cloud
    (``hall-3/station`` is ``station`` beside ``hall-3/edge``), unless two nodes would be called alike. *lines* are
    those of the wires, which names avoid.
    """
    left, bottom, _, _ = places.frame
    on_lines = [spaced(line, 3.0 * places.point) for line in lines] if len(places.nodes) <= 3 * _MOST else []
    points = (np.vstack([np.empty((0, 2)), *on_lines]) - (left, bottom)) / places.point
    board = Board(_frame(places), _marks(net, places, detail), _sensors(places, detail), points)
    written: dict[str, str] = {}
    for above, wish in _groups(net, places, detail):
        filled, labels, texts = _placed(board, above, wish, written)
        if len(labels) < _WORTHWHILE * len(above):
            continue
        board = filled
        written |= {name: texts[name] for name in labels}
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


def _placed(
    board: Board, above: _Above, wish: _Writer, written: Mapping[str, str]
) -> tuple[Board, dict[str, Label], dict[str, str]]:
    """The board with texts beside nodes, and the texts: the first that all have room, or else most."""
    best: tuple[Board, dict[str, Label], dict[str, str]] = (board, {}, {})
    for texts in _texts(above, written):
        trial = copy(board)
        labels = {name: label for name, text in texts.items() if (label := trial.place(wish(name, text))) is not None}
        if len(labels) > len(best[1]):
            best = trial, labels, texts
        if len(labels) == len(texts):
            break
    return best


def sensors(count: int) -> str:
    """How many, in words."""
    return "1 sensor" if count == 1 else f"{count:,} sensors"


def _groups(net: Net, places: Places, detail: Detail) -> Iterator[tuple[_Above, _Writer]]:
    """Nodes that have names if there is room for most of them."""
    for kind in _SIDES:
        names = net.of_kind(kind)
        for hops in sorted({net.hops[name] for name in names}) if len(names) <= _MOST else ():
            of_these = {name: _above(name, net) for name in names if net.hops[name] == hops}
            yield of_these, partial(_node, net, places, detail)
    if detail.sensor is not None and sum(map(len, net.cells.values())) <= _MOST_SENSORS:
        spots = {
            name: _points(places, (spot[0], spot[1]))
            for disc in places.discs.values()
            for name, spot in zip(disc.names, disc.sensors, strict=True)
        }
        stations = {name: station for station, disc in places.discs.items() for name in disc.names}
        radius = detail.sensor / 2
        yield stations, lambda name, text: Wish(text, spots[name], radius, _SENSOR_FONT, *_SENSOR_SIDES, on_colour=True)


def _above(name: str, net: Net) -> str | None:
    """The next node on the way to a cloud."""
    above = min(net.wires[name], key=lambda other: net.hops[other], default=name)
    return above if net.hops[above] < net.hops[name] else None


def _texts(above: _Above, written: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """What to call nodes, so that no two of all that is *written* are called alike, the shortest first.

    >>> above = {"hall-1/station": "hall-1/edge", "hall-2/station": "hall-2/edge"}
    >>> [list(texts.values()) for texts in _texts(above, {name: name for name in above.values()})]
    [['hall-1/station', 'hall-2/station'], ['hall-1/\\nstation', 'hall-2/\\nstation']]
    """
    own = {name: _own_part(name, other if other in written else None) for name, other in above.items()}
    lines = {name: name.replace("/", "/\n") for name in above}
    for names in (own, {name: name for name in above}, lines):
        texts = {name: "\n".join(map(shortened, text.split("\n"))) for name, text in names.items()}
        if len({*texts.values(), *written.values()}) == len(texts) + len(written):
            yield texts


def _node(net: Net, places: Places, detail: Detail, name: str, text: str) -> Wish:
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
