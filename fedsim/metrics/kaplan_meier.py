"""How much runs needed to reach a target, where some of them ended before: the Kaplan-Meier median.

A run that ended without reaching the target is *censored*: it would have needed more than it had spent. To leave it out
would be to look at the fast runs only. E. L. Kaplan and P. Meier, *Nonparametric Estimation from Incomplete
Observations*, Journal of the American Statistical Association 53 (1958).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsim.metrics.intervals import CONFIDENCE

__all__ = ["Median", "kaplan_meier_median"]

_HALF = 0.5 + 1e-12  # products of fractions may miss one half by rounding


@dataclass(frozen=True)
class Median:
    """What half of the runs need at most to reach the target; NaN is what the runs do not tell."""

    n: int
    """All runs."""
    reached: int
    """Those that reached the target."""
    value: float
    """The least value at which the Kaplan-Meier curve is at most 1/2; NaN where it stays above."""
    low: float
    """The lower end of its 95 % interval; NaN where the interval has no end on this side."""
    high: float
    """The upper end, likewise: with three runs it is always NaN."""
    above: float
    """Where there is no median: the largest value that the median of these runs is known to be above; else NaN.

    Infinite where most of them can never reach the target.
    """


def kaplan_meier_median(needed: Sequence[float], ended: Sequence[float]) -> Median:
    """The median of what runs *needed* until the target, where runs that *ended* without it are censored at their end.

    *needed* has a value for each run, NaN for one that did not reach the target; *ended* has what the run had spent at
    its end, of which only those of the latter count. NaN there is a run of which nothing is known: it is censored at 0.
    Infinity is a run that can never reach the target, as its model has diverged: it stays among those that have not.
    All are in the same unit, and not below 0. A run that ended at the very value at which another one reached the
    target counts as one that had still been there.

    The interval is that of R. Brookmeyer and J. Crowley (*A Confidence Interval for the Median Survival Time*,
    Biometrics 38, 1982): all values at which 1/2 is within the interval of the curve, whose variance is Greenwood's,
    on the scale of log(-log). It holds for many runs; `docs/comparing.md` says what it is worth for few.

    Raises `ValueError` where the lengths differ, a value is below 0, or what was needed is infinite.

    >>> kaplan_meier_median([2.0, float("nan"), 3.0], [0.0, 5.0, 0.0])
    Median(n=3, reached=2, value=3.0, low=2.0, high=nan, above=nan)
    >>> kaplan_meier_median([2.0, float("nan"), float("nan")], [0.0, 5.0, 5.5])
    Median(n=3, reached=1, value=nan, low=2.0, high=nan, above=5.0)
    """
    times = np.asarray(needed, dtype=float)
    ends = np.nan_to_num(np.asarray(ended, dtype=float), nan=0.0, posinf=math.inf, neginf=-math.inf)
    if times.shape != ends.shape or times.ndim != 1:
        raise ValueError(f"{times.shape} values of what was needed and {ends.shape} of what was spent at the end")
    missed = np.isnan(times)
    spent, censored = times[~missed], ends[missed]
    if not ((spent >= 0) & (spent < math.inf)).all() or not (censored >= 0).all():
        raise ValueError("what was needed must be finite, and nothing below 0")
    if not spent.size:
        return Median(times.size, 0, math.nan, math.nan, math.nan, _above(spent, censored))
    value, low, high = _median_and_interval(spent, censored)
    above = _above(spent, censored) if math.isnan(value) else math.nan
    return Median(times.size, spent.size, value, low, high, above)


def _median_and_interval(spent: NDArray[np.float64], censored: NDArray[np.float64]) -> tuple[float, float, float]:
    from scipy.stats import CensoredData, ecdf  # loads for half a second

    at_the_end = np.minimum(censored, 1 + max(spent))  # after the last step it does not matter when
    curve = ecdf(CensoredData(uncensored=spent, right=at_the_end)).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where the curve is at 1 or at 0 it has no interval
        interval = curve.confidence_interval(CONFIDENCE, method="log-log")
    steps = (curve, interval.low, interval.high)
    value, low, high = (_first(curve.quantiles, step.probabilities <= _HALF) for step in steps)
    return value, low, high


def _first(values: NDArray[np.float64], there: NDArray[np.bool_]) -> float:
    return float(values[there.argmax()]) if there.any() else math.nan


def _above(spent: NDArray[np.float64], censored: NDArray[np.float64]) -> float:
    """The largest end of a censored run at which fewer than half of the runs can have reached the target.

    Those that reached it by then, and all that had ended before: nobody followed them any longer.
    """
    half = -(-(spent.size + censored.size) // 2)
    possible = [
        float(end) for end in censored if np.count_nonzero(spent <= end) + np.count_nonzero(censored < end) < half
    ]
    return max(possible, default=math.nan)
