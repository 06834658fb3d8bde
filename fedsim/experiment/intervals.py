"""Means over seeds and what can be said of them: Student's 95 % intervals, and differences paired by seed.

The interval is Student's (W. S. Gosset, *The probable error of a mean*, Biometrika 1908): it takes the values as
independent and normally distributed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from fedsim.errors import UserError, nearest, some

__all__ = ["CONFIDENCE", "Difference", "difference", "half_width"]

CONFIDENCE = 0.95


def half_width(values: Sequence[float]) -> float:
    """Half the width of the 95 % interval of the mean: t(0.975, n-1) s / sqrt(n).

    NaN for fewer than two values, and where one is infinite.

    >>> round(half_width([1.0, 2.0, 3.0]), 4)  # t = 4.3027, s = 1
    2.4841
    """
    from scipy.stats import t

    n = len(values)
    if n < 2 or not all(map(math.isfinite, values)):
        return math.nan
    return float(t.ppf((1 + CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1) / math.sqrt(n))


@dataclass(frozen=True)
class Difference:
    """By how much a number is larger for one protocol than for another, paired by seed."""

    mean: float
    half_width: float
    """Half of the 95 % interval; NaN with one seed."""
    n: int
    """Seeds that both have."""

    @property
    def sign(self) -> Literal[1, 0, -1]:
        """1 or -1 when the whole interval is on that side of zero; 0 while it is not, and with one seed."""
        if not abs(self.mean) > self.half_width:
            return 0
        return 1 if self.mean > 0 else -1


def difference(summary: pd.DataFrame, one: str, other: str, metric: str = "final_accuracy") -> Difference:
    """By how much *metric* is larger for protocol *one* than for *other*, seed by seed.

    On a seed all protocols meet the same data, the same start and the same draws; pairing takes out what that does to
    both, so the interval is narrower than those of the two means. Seeds that have a value of one only do not count, and
    where both are infinite there is no difference (NaN). *summary* is a table like `Results.summary`, of which
    the rows with accounting ``event`` count. Raises `UserError` when a column or a protocol is not there, a run stands
    twice, or no seed has a value of both.

    >>> seeds = pd.DataFrame({"protocol": list("aabb"), "seed": [1, 2, 1, 2], "final_accuracy": [0.8, 0.7, 0.7, 0.61]})
    >>> found = difference(seeds.assign(accounting="event"), "a", "b")
    >>> round(found.mean, 3), round(found.half_width, 4), found.n, found.sign
    (0.095, 0.0635, 2, 1)
    """
    if metric not in summary:
        raise UserError(f"there is no column {metric!r} in this summary{nearest(metric, map(str, summary))}")
    events = summary[summary["accounting"] == "event"]
    if events.duplicated(["protocol", "seed"]).any():
        raise UserError("a protocol and seed stand twice in this summary")
    values = events.pivot(index="seed", columns="protocol", values=metric)
    for protocol in (one, other):
        if protocol not in values:
            known = [str(name) for name in values]
            raise UserError(f"there is no protocol {protocol!r} (there is {some(known)}){nearest(protocol, known)}")
    paired = values[[one, other]].dropna()
    if paired.empty:
        raise UserError(f"{one!r} and {other!r} have no seed in common with a {metric}")
    differences = (paired[one] - paired[other]).to_list()
    return Difference(float(np.mean(differences)), half_width(differences), len(differences))
