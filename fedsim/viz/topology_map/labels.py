"""Labels beside what they name, where there is room: none covers another, a marker or the frame.

The first one asked for is placed first; one that fits nowhere is left out. Leaves out lines from labels to far places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from fedsim.viz.topology_map.places import Box, Point, Points

__all__ = ["Board", "Label", "Wish", "shortened", "text_width"]

_LINE = 1.2  # height of a line in font sizes; other lengths are typographic points
_GAP = 1.5
_APART = 2.5  # left and right of a text
_DISLIKE = 1.5  # of the next best place, in points of lines
_LONGEST = 30  # letters


@dataclass(frozen=True)
class Wish:
    """A text that wants to stand beside something round, at one of these sides, the best first."""

    text: str
    centre: Point
    radius: float
    font_size: float
    sides: str = "below above right left corners"
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


class Board:
    """A frame that fills up with boxes; texts avoid *lines* (points on them) too, where there is a choice."""

    def __init__(self, frame: Box, taken: Iterable[Box], discs: Iterable[Box], lines: Points) -> None:
        self._frame = frame
        nothing = frame[:2] + frame[:2]
        self._boxes = np.array([nothing, *taken])
        self._discs = np.array([nothing, *discs])
        self._lines = lines

    def place(self, wish: Wish) -> Label | None:
        """Find room for a text around what it names; None when there is none."""
        free = [
            (self._crossed(box) + _DISLIKE * number, number, label, box)
            for number, (label, box) in enumerate(_candidates(wish))
            if self._is_free(box, wish.on_colour)
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

    def _is_free(self, box: Box, on_colour: bool) -> bool:
        left, bottom, right, top = box
        if left < self._frame[0] or bottom < self._frame[1] or right > self._frame[2] or top > self._frame[3]:
            return False
        boxes = self._boxes if on_colour else np.vstack([self._boxes, self._discs])
        apart = (boxes[:, 0] >= right) | (boxes[:, 2] <= left) | (boxes[:, 1] >= top) | (boxes[:, 3] <= bottom)
        return bool(apart.all())


def text_width(text: str, font_size: float) -> float:
    """How wide the longest line of a text is."""
    font = FontProperties(size=font_size)
    return max(text_to_path.get_text_width_height_descent(line, font, ismath=False)[0] for line in text.split("\n"))


def shortened(name: str, longest: int = _LONGEST) -> str:
    """A name that is not too long: the middle is what it loses.

    >>> shortened("plant-north/hall-17/line-3/station-002"), shortened("hall-1")
    ('plant-north/hal…-3/station-002', 'hall-1')
    """
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[half - longest + 1 :]}"


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
