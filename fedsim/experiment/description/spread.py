"""Many numbers in four: smallest, median, mean and largest."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

__all__ = ["Spread", "spread_of"]

Spread = dict[str, float]
"""``min``, ``median``, ``mean`` and ``max``."""


def spread_of(values: Iterable[float]) -> Spread | None:
    """The spread of *values*; None when there are none. Where some are infinite, so is the mean.

    >>> spread_of([1, 2, 6])
    {'min': 1.0, 'median': 2.0, 'mean': 3.0, 'max': 6.0}
    """
    numbers = np.sort(np.fromiter(values, np.float64))
    if not len(numbers):
        return None
    low, high = numbers[(len(numbers) - 1) // 2], numbers[len(numbers) // 2]
    return {
        "min": float(numbers[0]),
        "median": float(low) if low == high else float((low + high) / 2),
        "mean": float(np.clip(numbers.mean(), numbers[0], numbers[-1])),  # equal numbers have their own
        "max": float(numbers[-1]),
    }
