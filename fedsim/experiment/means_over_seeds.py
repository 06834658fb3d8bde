"""Means over seeds, each with a 95 % interval.

The interval is Student's (W. S. Gosset, *The probable error of a mean*, Biometrika 1908): it takes the values as
independent and normally distributed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["CONFIDENCE", "METRICS", "half_width", "means_over_seeds"]

CONFIDENCE = 0.95
METRICS = (
    "final_accuracy",
    "best_accuracy",
    "loss",
    "rmse",
    "final_accuracy_global",
    "rmse_global",
    "final_accuracy_clients",
    "rmse_clients",
    "final_accuracy_unseen",
    "rmse_unseen",
    "sim_time_s",
    "uplink_bytes",
    "downlink_bytes",
    "transfer_bytes",
    "network_bytes",
    "energy_j",
    "rounds",
    "time_to_target_s",
    "bytes_to_target",
    "rounds_to_target",
    "communication_s",
    "computation_s",
)
"""Columns of a summary that are averaged over seeds."""


def means_over_seeds(run: str, summary: pd.DataFrame) -> list[dict[str, Any]]:
    """A row for each protocol and accounting in the *summary* of a *run*, with the columns of `fedsim.compare`."""
    return [
        {"run": run, "protocol": protocol, "accounting": accounting, "n": len(seeds), **_statistics(seeds)}
        for (protocol, accounting), seeds in summary.groupby(["protocol", "accounting"], sort=False)
    ]


def _statistics(seeds: pd.DataFrame) -> dict[str, float]:
    columns: dict[str, float] = {}
    for metric in METRICS:
        known = seeds[metric].dropna().to_list() if metric in seeds else []
        columns[f"{metric}_mean"] = float(np.mean(known)) if known else math.nan
        columns[f"{metric}_half_width"] = half_width(known)
        columns[f"{metric}_n"] = len(known)
    return columns


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
