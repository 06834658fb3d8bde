"""The names of nodes, where there is room for them, and how many sensors a cell has that does not show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from fedsim.topology.graph import NodeKind
from fedsim.viz.names import legible, shortened
from fedsim.viz.style import DARK, RC, plain
from fedsim.viz.topology_map.places import LARGE, Net, Places, Points, counted

__all__ = ["names_beside"]

_UP, _DOWN, _RIGHT, _LEFT = (0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)
_CORNERS = ((0.9, 0.9), (-0.9, 0.9), (0.9, -0.9), (-0.9, -0.9))
_RULES = {  # on which side of a node its name goes, the best first; what each next one costs, in points on wires
    NodeKind.CLOUD: ((_UP, _RIGHT, _LEFT, *_CORNERS, _DOWN), 2.5),
    NodeKind.EDGE: ((_RIGHT, _LEFT, _DOWN, _UP, *_CORNERS), 2.5),
    NodeKind.BASE_STATION: ((_DOWN, _UP, _RIGHT, _LEFT, *_CORNERS), 20.0),
    NodeKind.SENSOR: ((_DOWN, _UP, _RIGHT, _LEFT, *_CORNERS), 2.5),
}
_LOOK = {"xycoords": "axes points", "ha": "center", "va": "center", "linespacing": 1.1, "color": DARK, "zorder": 9.0}
_LOOK |= {"bbox": {"boxstyle": "square,pad=0.0", "facecolor": "white", "alpha": 0.7, "linewidth": 0.0}}


def names_beside(ax: Axes, net: Net, places: Places, wires: Sequence[Points]) -> list[dict[str, Any]]:
    """The names of clouds, edge servers, base stations and sensors, or of none in a layer, for `Axes.annotate`.

    A name covers no other one, no marker, no disc and nothing outside the frame, and where there is a choice no wire.
    It does not repeat what it shares with the name, if that is written, of the next node on the way to the cloud
    (``hall-3/station`` is ``station`` beside ``hall-3/edge``), unless two nodes would be called alike.
    """
    board, written, labels = _Board(ax, net, places, wires), dict[str, str](), list[dict[str, Any]]()
    above = net.above | {sensor: station for station, cell in net.cells.items() for sensor in cell}
    for kind in _RULES:
        names = [name for name, its_kind in board.kinds.items() if its_kind == kind]
        few = len(names) <= (12 if kind == NodeKind.SENSOR else 60)
        for hops in sorted({net.hops.get(name, 0) for name in names}) if few else ():
            layer = {name: above.get(name, "") for name in names if net.hops.get(name, 0) == hops}
            tried = [(board.room(kind, texts), texts) for texts in _texts(layer, written)]
            found, texts = max(tried, key=lambda trial: len(trial[0]), default=({}, {}))
            if len(found) >= 0.6 * len(layer):
                board.boxes = np.vstack([board.boxes, *(box for box, _ in found.values())])
                written |= {name: texts[name] for name in found}
                labels += [label for _, label in found.values()]
    board.probe.remove()
    return labels


def _texts(above: Mapping[str, str], written: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """What to call nodes, so that no two of all that is *written* are called alike, the shortest first.

    >>> above = {"hall-1/station": "hall-1/edge", "hall-2/station": "hall-2/edge"}
    >>> [list(texts.values()) for texts in _texts(above, {name: name for name in above.values()})]
    [['hall-1/station', 'hall-2/station'], ['hall-1/\\nstation', 'hall-2/\\nstation']]
    """
    own = {name: name for name in above}
    for name, other in ((name, other) for name, other in above.items() if other in written):
        paths = (f"{other}/", other[: other.rfind("/") + 1])
        own[name] = name[max((len(path) for path in paths if name.startswith(path)), default=0) :]
    for names in (own, {name: name for name in above}, {name: name.replace("/", "/\n") for name in above}):
        texts = {name: "\n".join(map(shortened, text.split("\n"))) for name, text in names.items()}
        if len({*texts.values(), *written.values()}) == len(texts) + len(written):
            yield texts


class _Board:
    """A frame with marks and wires, in points from its lower left, that fills up with names."""

    def __init__(self, ax: Axes, net: Net, places: Places, wires: Sequence[Points]) -> None:
        self.net, self.sizes, self.probe = net, places.sizes, ax.text(0.0, 0.0, "", linespacing=1.1)
        self.kinds, spots = dict(net.kinds), [places.nodes[name] for name in net.kinds]
        for station, cell in net.cells.items() if NodeKind.SENSOR in places.sizes else ():
            self.kinds |= dict.fromkeys(cell, NodeKind.SENSOR)
            spots += places.sensors[station].tolist()
        self.pixels, few = RC["figure.dpi"] / 72, wires if len(wires) <= 180 else ()
        points = (ax.transData.transform(np.vstack([*few, places.frame[2:], spots])) - ax.bbox.p0) / self.pixels
        self.wires, self.size, self.spots = np.split(points, [len(points) - len(spots) - 1, len(points) - len(spots)])
        self.boxes = np.empty((0, 4))
        markers = np.array([self.sizes.get(kind, self.sizes[NodeKind.EDGE]) / 2 for kind in self.kinds.values()])
        discs = np.array([places.radii.get(name, 0.0) / places.point for name in self.kinds])
        self.radii = {True: markers, False: np.maximum(markers, np.where(discs <= LARGE, discs, 0.0))}

    def room(self, kind: NodeKind, texts: Mapping[str, str]) -> dict[str, tuple[Points, dict[str, Any]]]:
        """The boxes and the labels of those of the *texts* for which there is room, the first ones first."""
        of_sensors = kind == NodeKind.SENSOR
        radii, font, away = self.radii[of_sensors], 6.5 if of_sensors else 7.5, 0.0 if of_sensors else 6.0
        keep = (radii + np.where(np.arange(len(radii)) < len(self.net.kinds), away, 0.0))[:, None]
        boxes, numbers = np.vstack([np.hstack([self.spots - keep, self.spots + keep]), self.boxes]), list(self.kinds)
        labels: dict[str, tuple[Points, dict[str, Any]]] = {}
        for name, text in texts.items():
            hidden = [] if NodeKind.SENSOR in self.sizes else self.net.cells.get(name, [])
            said = plain(legible(text + f"\n{counted(len(hidden), 'sensor')}" * bool(hidden)))
            number = numbers.index(name)
            edge = radii[number] + 1.5
            found = self._beside(
                self.spots[number], edge, self._half(said, font), np.delete(boxes, number, axis=0), kind
            )
            if found is not None:
                box, side = found
                align = {1.0: "left", -1.0: "right"}.get(side[0], "center")
                labels[name] = box, {"text": said, "xy": (box[:2] + box[2:]) / 2, "fontsize": font, "ma": align} | _LOOK
                boxes = np.vstack([boxes, box])
        return labels

    def _half(self, text: str, font: float) -> Points:
        """Half the width and height of a text, with a margin on both sides."""
        self.probe.set(text=text, fontsize=font)
        extent = self.probe.get_window_extent()
        return np.array([extent.width / self.pixels + 2.0, extent.height / self.pixels]) / 2

    def _beside(
        self, spot: Points, edge: float, half: Points, others: Points, kind: NodeKind
    ) -> tuple[Points, tuple[float, float]] | None:
        """The box and side of a text, so far from its node, that covers no *others* and costs least; None: no room."""
        sides, cost = _RULES[kind]
        free = []
        for rank, side in enumerate(sides):
            middle = spot + np.multiply(side, edge) + np.sign(side) * half
            low, high = middle - half, middle + half
            apart = ((others[:, :2] >= high) | (others[:, 2:] <= low)).any(axis=1).all()
            if apart and (low >= 0.0).all() and (high <= self.size).all():
                crossed = int(((self.wires > low) & (self.wires < high)).all(axis=1).sum())
                free.append((crossed + cost * rank, rank, np.concatenate([low, high])))
        if not free:
            return None
        _, rank, box = min(free)
        return box, sides[rank]
