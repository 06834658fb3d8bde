"""Labels beside what they name, where there is room: none covers another one, a marker or the frame.

The first one asked for is placed first; one that fits nowhere is left out. Leaves out lines from labels to far places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from fedsim.viz.names import legible
from fedsim.viz.topology_map.places import Box, Point, Points

__all__ = ["Board", "Label", "Marks", "Wish", "text_width"]

Numbers = npt.NDArray[np.float64]

_LINE = 1.2  # height of a line in font sizes; other lengths are typographic points
_GAP = 1.5
_APART = 2.5  # left and right of a text
_AWAY = 6.0  # from the marks of others


@dataclass(frozen=True)
class Wish:
    """A text that wants to stand beside something round, at one of these sides, the best first."""

    text: str
    centre: Point
    radius: float
    font_size: float
    sides: str
    dislike: float
    """Of the next best side, in points of lines that it would rather cover."""
    on_colour: bool = False
    """Whether it may stand on a disc."""


@dataclass(frozen=True, order=True)
class Label:
    """A text and its anchor."""

    text: str
    x: float
    y: float
    across: Literal["left", "center", "right"]
    font_size: float
    on_colour: bool


@dataclass(frozen=True, eq=False)
class Marks:
    """The round marks of named things."""

    centres: Points
    markers: Numbers
    """Radii of their markers."""
    outlines: Numbers
    """Radii of all that belongs to them: of their discs, if they have one that no text may cover."""


class Board:
    """A frame with *marks* and *others*, which are just in the way, that fills up with texts.

    Texts keep away from marks that they do not name, so that nobody wonders whose they are, and where there is a choice
    from *lines*, which are given as points.
    """

    def __init__(self, frame: Box, marks: Marks, others: Iterable[Box], lines: Points) -> None:
        self._frame = frame
        self._marks = marks
        self._boxes = np.array(list(others), dtype=np.float64).reshape(-1, 4)
        self._lines = lines

    def place(self, wish: Wish) -> Label | None:
        """Find room for a text around what it names; None when there is none."""
        free = [
            (self._crossed(box) + wish.dislike * number, number, label, box)
            for number, (label, box) in enumerate(_candidates(wish))
            if self._is_inside(box) and self._is_clear_of_texts(box) and self._is_clear_of_marks(box, wish)
        ]
        if not free:
            return None
        _, _, label, box = min(free)
        self._boxes = np.vstack([self._boxes, box])
        return label

    def _crossed(self, box: Box) -> int:
        """How many points of lines are in a box."""
        x, y = self._lines[:, 0], self._lines[:, 1]
        return int(((x > box[0]) & (x < box[2]) & (y > box[1]) & (y < box[3])).sum())

    def _is_inside(self, box: Box) -> bool:
        left, bottom, right, top = self._frame
        return box[0] >= left and box[1] >= bottom and box[2] <= right and box[3] <= top

    def _is_clear_of_texts(self, box: Box) -> bool:
        boxes = self._boxes
        apart = (boxes[:, 0] >= box[2]) | (boxes[:, 2] <= box[0]) | (boxes[:, 1] >= box[3]) | (boxes[:, 3] <= box[1])
        return bool(apart.all())

    def _is_clear_of_marks(self, box: Box, wish: Wish) -> bool:
        marks = self._marks
        nearest = np.clip(marks.centres, box[:2], box[2:])
        gaps = np.linalg.norm(marks.centres - nearest, axis=1)
        if wish.on_colour:
            return bool((gaps >= marks.markers).all())
        own = (marks.centres == wish.centre).all(axis=1)
        return bool((gaps >= marks.outlines + np.where(own, 0.0, _AWAY)).all())


def text_width(text: str, font_size: float) -> float:
    """How wide the longest line of a text is."""
    font = FontProperties(size=font_size)
    lines = legible(text).split("\n")
    return max(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in lines)


def _candidates(wish: Wish) -> Iterator[tuple[Label, Box]]:
    x, y = wish.centre
    wide, high = text_width(wish.text, wish.font_size), _LINE * wish.font_size * (wish.text.count("\n") + 1)
    far, near = wish.radius + _GAP, 0.7 * wish.radius + _GAP
    beside, diagonal = far + _APART, near + _APART
    around: dict[str, list[tuple[Literal["left", "center", "right"], float, float]]] = {
        "below": [("center", x, y - far - high / 2)],
        "above": [("center", x, y + far + high / 2)],
        "right": [("left", x + beside, y)],
        "left": [("right", x - beside, y)],
        "corners": [
            ("left", x + diagonal, y + near + high / 3),
            ("right", x - diagonal, y + near + high / 3),
            ("left", x + diagonal, y - near - high / 3),
            ("right", x - diagonal, y - near - high / 3),
        ],
    }
    for across, anchor_x, anchor_y in (place for side in wish.sides.split() for place in around[side]):
        left = anchor_x - {"left": 0.0, "center": wide / 2, "right": wide}[across]
        box = (left - _APART, anchor_y - high / 2, left + wide + _APART, anchor_y + high / 2)
        yield Label(wish.text, anchor_x, anchor_y, across, wish.font_size, wish.on_colour), box
