"""The shapes of marks, as those of ``fedsim plot``: lines that SVG and Vega draw, in a square from -1 to 1."""

from __future__ import annotations

from collections.abc import Iterable
from math import cos, pi, sin

__all__ = ["SHAPES"]


def _around(corners: Iterable[tuple[float, float]]) -> str:
    return f"M{'L'.join(f'{x:.4g},{y:.4g}' for x, y in corners)}Z"


def _star(points: int, inner: float) -> str:
    """With a corner on top; its inner corners are so far from the middle."""
    angles = [pi * turn / points for turn in range(2 * points)]
    radii = [inner if turn % 2 else 1.0 for turn in range(2 * points)]
    return _around((radius * sin(angle), -radius * cos(angle)) for radius, angle in zip(radii, angles, strict=True))


SHAPES = {
    "o": "M-0.9,0A0.9,0.9,0,1,1,0.9,0A0.9,0.9,0,1,1,-0.9,0Z",
    "s": _around([(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)]),
    "^": _around([(0, -0.95), (1, 0.8), (-1, 0.8)]),
    "D": _around([(0, -1), (1, 0), (0, 1), (-1, 0)]),
    "v": _around([(0, 0.95), (1, -0.8), (-1, -0.8)]),
    "P": _around(
        (x * sign, y * sign)
        for sign in (1, -1)
        for x, y in ((-0.35, -1), (0.35, -1), (0.35, -0.35), (1, -0.35), (1, 0.35), (0.35, 0.35))
    ),
    "*": _star(5, 0.45),
    "h": _star(3, 1.0),
}
"""By the marker that matplotlib calls so (`fedsim.viz.style.Look`)."""
