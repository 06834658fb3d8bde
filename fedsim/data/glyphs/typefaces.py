"""The letters of 20 typefaces as signed distances: how far each point of a frame lies outside the ink.

The outlines come with matplotlib (its own folder of fonts; the system's are never looked at), at 1/6400 of the em and
unhinted, so no rasteriser has a say. Each character is cut out and scaled to the frame as FEMNIST's preprocessing
does: its bounding box is centred and the longer side fills [-1, 1]. Left out: kerning and the size of a character
relative to its neighbours, so that o, O and 0 differ by their shape alone.
"""

from __future__ import annotations

import string
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.cache import cached
from fedsim.data.raw_dataset import RawDataset
from fedsim.data.reading.packaged import packaged_file
from fedsim.errors import UserError

__all__ = [
    "CHARACTERS",
    "FRAME",
    "GRID",
    "TYPEFACES",
    "check_fonts",
    "font_file",
    "signed_distance",
    "strokes",
    "template",
]

CHARACTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase  # the label is the position: FEMNIST's
TYPEFACES = (
    "DejaVuSans",
    "DejaVuSans-Bold",
    "DejaVuSans-Oblique",
    "DejaVuSans-BoldOblique",
    "DejaVuSansMono",
    "DejaVuSansMono-Bold",
    "DejaVuSansMono-Oblique",
    "DejaVuSansMono-BoldOblique",
    "DejaVuSerif",
    "DejaVuSerif-Bold",
    "DejaVuSerif-Italic",
    "DejaVuSerif-BoldItalic",
    "STIXGeneral",
    "STIXGeneralBol",
    "STIXGeneralItalic",
    "STIXGeneralBolIta",
    "cmr10",
    "cmb10",
    "cmss10",
    "cmtt10",
)
VERSION = 1  # raise it when the distances of the same outlines change
GRID = 64  # points per side of a template
FRAME = 1.5  # a template covers [-FRAME, FRAME] in both directions; its outermost points lie on the edge
PIECES = 2  # straight pieces for each degree of a Bezier curve
EM = 100.0  # matplotlib rounds an outline to 1/64 of a unit

Point = tuple[float, float]


@cache
def template(typeface: str) -> NDArray[np.float32]:
    """(62, GRID, GRID) signed distances, negative in the ink; row 0 is the top. Computed once, then in the cache.

    Unit: half of the longer side of the character's bounding box. Raises `UserError` where matplotlib or its font is
    missing.
    """

    def make() -> RawDataset:
        letters = [signed_distance(strokes(typeface, letter)) for letter in CHARACTERS]
        return RawDataset(x=np.stack(letters), y=np.arange(len(CHARACTERS)), classes=len(CHARACTERS), sample_bytes=1.0)

    options = {"typeface": typeface, "grid": GRID, "frame": FRAME, "pieces": PIECES}
    made = np.asarray(cached("glyphs-typeface", VERSION, [Path(font_file(typeface))], options, make).x)
    made.flags.writeable = False
    return made


def strokes(typeface: str, letter: str) -> NDArray[np.float64]:
    """(pieces, 2, 2) from-point and to-point, (x, y) with y upwards, of the closed outline in the frame.

    >>> outline = strokes("DejaVuSans", "l")  # an upright bar
    >>> outline[:, 0, 1].tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    pieces = np.array(_pieces(_outline(typeface, letter)))
    low, high = pieces.min((0, 1)), pieces.max((0, 1))
    framed: NDArray[np.float64] = (pieces - (low + high) / 2) / ((high - low).max() / 2)
    some_length: NDArray[np.bool_] = (framed[:, 0] != framed[:, 1]).any(1)
    return np.compress(some_length, framed, axis=0)


def signed_distance(pieces: NDArray[np.float64]) -> NDArray[np.float32]:
    """(GRID, GRID) distance to the nearest of *pieces*, negative where their winding number is not 0.

    >>> square = np.array([[[-1, -1], [1, -1]], [[1, -1], [1, 1]], [[1, 1], [-1, 1]], [[-1, 1], [-1, -1]]], float)
    >>> distance = signed_distance(square)
    >>> round(float(distance[0, 0]), 3), round(float(distance[32, 0]), 3), round(float(distance[32, 32]), 3)
    (0.707, 0.5, -0.976)
    """
    at = np.linspace(-FRAME, FRAME, GRID, dtype=np.float32)
    x, y = at[None, :], -at[:, None]
    nearest = np.full((GRID, GRID), np.inf, np.float32)  # squared distance
    winding = np.zeros((GRID, GRID), np.int8)
    for (x0, y0), (x1, y1) in pieces.astype(np.float32):
        dx, dy = x1 - x0, y1 - y0
        square = dx * dx + dy * dy
        along = (x - x0) * (dx / square) + (y - y0) * (dy / square)  # 0 at the from-point, 1 at the to-point
        np.minimum(np.maximum(along, 0, out=along), 1, out=along)
        away_x, away_y = along * dx, along * dy
        np.subtract(x - x0, away_x, out=away_x)
        np.subtract(y - y0, away_y, out=away_y)
        np.minimum(nearest, away_x * away_x + away_y * away_y, out=nearest)
        rows = np.flatnonzero((min(y0, y1) <= y) & (y < max(y0, y1)))  # which the piece crosses
        if rows.size:
            crossing = x0 + (y[rows] - y0) * (dx / dy)
            winding[rows] += np.where(x < crossing, np.int8(np.sign(dy)), np.int8(0))
    signed: NDArray[np.float32] = np.where(winding != 0, -np.sqrt(nearest), np.sqrt(nearest))
    return signed


def font_file(typeface: str) -> str:
    """Where matplotlib keeps *typeface*. Raises `UserError` where there is no matplotlib."""
    file = packaged_file("matplotlib", f"mpl-data/fonts/ttf/{typeface}.ttf")
    if file is None:
        raise UserError("data set 'glyphs' draws with matplotlib's fonts; install matplotlib")
    return str(file)


def check_fonts() -> None:
    """Raise `UserError` where matplotlib or one of its fonts is missing."""
    for typeface in TYPEFACES:
        file = font_file(typeface)
        if not Path(file).is_file():
            raise UserError(f"matplotlib's font {file} is not there; install matplotlib anew")


def _outline(typeface: str, letter: str) -> Any:
    file = font_file(typeface)
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    try:
        return TextPath((0, 0), letter, size=EM, prop=FontProperties(fname=file))
    except OSError as missing:
        raise UserError(f"matplotlib's font {file} cannot be read ({missing}); install matplotlib anew") from missing


def _pieces(outline: Any) -> list[tuple[Point, Point]]:
    """Straight pieces of a matplotlib path: a Bezier curve is cut at equal steps of its parameter."""
    corners: list[Point] = []
    starts: list[int] = []
    for numbers, code in outline.iter_segments(simplify=False):
        points = [(float(x), float(y)) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
        if code == outline.MOVETO:
            starts.append(len(corners))
            corners += points
        elif code == outline.CLOSEPOLY:
            corners.append(corners[starts[-1]])
        elif code == outline.LINETO:
            corners += points
        else:
            control = [corners[-1], *points]
            pieces = PIECES * len(points)
            corners += [_bezier(control, step / pieces) for step in range(1, pieces + 1)]
    return [(corners[i - 1], corners[i]) for i in range(1, len(corners)) if i not in starts]


def _bezier(control: list[Point], at: float) -> Point:
    """De Casteljau's algorithm."""
    while len(control) > 1:
        control = [(x0 + at * (x1 - x0), y0 + at * (y1 - y0)) for (x0, y0), (x1, y1) in pairwise(control)]
    return control[0]
