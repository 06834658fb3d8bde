"""Lines of many points with fewer of them, that look the same.

Source: S. Steinarsson, *Downsampling Time Series for Visual Representation*, MSc thesis, University of Iceland, 2013,
section 4.2 (largest triangle, three buckets).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_POINTS", "kept_points"]

MOST_POINTS = 2_000
"""Of a line in a report."""


def kept_points(x: npt.ArrayLike, y: npt.ArrayLike, most: int = MOST_POINTS) -> npt.NDArray[np.intp]:
    """Which points of a line are kept, at *most* so many (three or more), in their order.

    The first and the last are. Between them are *most* - 2 buckets of points. Of each bucket stays the point that makes
    the largest triangle with the point kept before and with the mean of the next bucket.

    >>> kept_points(range(7), [0, 0, 9, 0, 0, -5, 0], most=4).tolist()
    [0, 2, 5, 6]
    """
    across, up = np.asarray(x, np.float64), np.asarray(y, np.float64)
    points = len(across)
    if points <= most:
        return np.arange(points)
    edges = np.linspace(1, points - 1, most - 1).astype(np.intp)  # of the buckets; the last point is in none
    kept = np.zeros(most, np.intp)
    for bucket in range(most - 2):
        begin, end = edges[bucket], edges[bucket + 1]
        following = slice(end, edges[bucket + 2] if bucket + 2 < len(edges) else points)
        before = kept[bucket]
        aside_x, aside_y = across[following].mean() - across[before], up[following].mean() - up[before]
        twice_area = np.abs(aside_x * (up[begin:end] - up[before]) - (across[begin:end] - across[before]) * aside_y)
        kept[bucket + 1] = begin + twice_area.argmax()
    kept[-1] = points - 1
    return kept
