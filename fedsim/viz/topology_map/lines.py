"""The line of a wire: straight, or bent around the nodes that would seem to be on it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedsim.viz.topology_map.places import Point, Points

__all__ = ["distances", "halves", "spaced", "wire_line"]

Numbers = npt.NDArray[np.float64]

_BENDS = (0.05, -0.05, 0.1, -0.1, 0.16, -0.16, 0.24, -0.24, 0.36, -0.36)  # of the length, sideways
_STEPS = 32


def wire_line(a: Point, b: Point, others: Points, clear: float) -> Points:
    """Points from *a* to *b* that stay *clear* of *others*; straight when every bend that is tried meets one.

    >>> wire_line((0.0, 0.0), (4.0, 0.0), np.empty((0, 2)), clear=1.0).tolist()
    [[0.0, 0.0], [4.0, 0.0]]
    """
    start, end = np.array(a), np.array(b)
    straight = np.array([a, b])
    if len(others) == 0 or distances(others, start, end).min() >= clear:
        return straight
    for bend in _BENDS:
        line = _bent(start, end, bend)
        if np.linalg.norm(line[:, None, :] - others[None, :, :], axis=2).min() >= clear:
            return line
    return straight


def halves(line: Points, from_a: float, from_b: float, gap: float) -> tuple[Points, Points] | None:
    """The two halves of a line, each from its own end to the middle, without what is nearer to an end than given.

    None when nothing is left between the ends.
    """
    lengths = _lengths(line)
    first, last = from_a, lengths[-1] - from_b
    if last - first <= gap:
        return None
    middle = (first + last) / 2
    return _part(line, lengths, first, middle - gap / 2), _part(line, lengths, middle + gap / 2, last)[::-1]


def distances(spots: Points, a: Numbers, b: Numbers) -> Numbers:
    """From each of the *spots* to the straight line between two places.

    >>> distances(np.array([[1.0, 2.0], [7.0, 4.0]]), np.array([0.0, 0.0]), np.array([4.0, 0.0])).tolist()
    [2.0, 5.0]
    """
    along = b - a
    squared = float(along @ along)
    part = np.clip((spots - a) @ along / squared, 0.0, 1.0) if squared > 0 else np.zeros(len(spots))
    away: Numbers = np.linalg.norm(spots - (a + part[:, None] * along), axis=1)
    return away


def spaced(line: Points, step: float) -> Points:
    """Points on a line, about *step* apart."""
    lengths = _lengths(line)
    at = np.linspace(0.0, lengths[-1], int(lengths[-1] / step) + 2)
    return np.column_stack([np.interp(at, lengths, line[:, 0]), np.interp(at, lengths, line[:, 1])])


def _lengths(line: Points) -> Numbers:
    """How far each point is from the first one, along the line."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])


def _part(line: Points, lengths: Numbers, start: float, end: float) -> Points:
    least = 1e-6 * lengths[-1]  # so that no piece has no length
    at = np.concatenate([[start], lengths[(lengths > start + least) & (lengths < end - least)], [end]])
    return np.column_stack([np.interp(at, lengths, line[:, 0]), np.interp(at, lengths, line[:, 1])])


def _bent(a: Points, b: Points, bend: float) -> Points:
    """A quadratic Bezier curve."""
    along = b - a
    control = (a + b) / 2 + 2 * bend * np.array([-along[1], along[0]])
    t = np.linspace(0.0, 1.0, _STEPS + 1)[:, None]
    return (1 - t) ** 2 * a + 2 * t * (1 - t) * control + t**2 * b
