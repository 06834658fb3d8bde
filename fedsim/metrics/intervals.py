"""Intervals of means over seeds (W. S. Gosset, *The probable error of a mean*, Biometrika 1908)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["CONFIDENCE", "half_width"]

CONFIDENCE = 0.95


def half_width(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the mean: t(0.975, n-1) s / sqrt(n).

    NaN for fewer than two values, and where one is infinite; 0 where all are equal.

    >>> round(half_width([1.0, 2.0, 3.0]), 4)  # t = 4.3027, s = 1
    2.4841
    """
    n = len(values)
    if n < 2 or not all(map(math.isfinite, values)):
        return math.nan
    if min(values) == max(values):  # their mean may be another number, by rounding
        return 0.0
    from scipy.special import stdtrit  # not scipy.stats, which loads for half a second

    return float(stdtrit(n - 1, (1 + CONFIDENCE) / 2) * np.std(values, ddof=1) / math.sqrt(n))
