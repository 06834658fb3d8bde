"""A mean over independent values against the one that a law states."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["assert_mean"]


def assert_mean(values: Sequence[float], expected: float, fault: float) -> None:
    """The mean is within 4 standard errors of *expected*, and a mean wrong by *fault* (relative) would be seen."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert 4 * error < fault * abs(expected), f"no power: 4 standard errors are {4 * error / abs(expected):.1%}"
    assert abs(np.mean(values) - expected) < 4 * error, f"the mean is {np.mean(values)}, not {expected}"
