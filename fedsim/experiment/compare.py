"""Protocols side by side: means over seeds, each with a 95 % interval.

The interval is Student's (W. S. Gosset, *The probable error of a mean*, Biometrika 1908): it takes the seeds' results
as independent and normally distributed. Left out: differences paired by seed, which would be sharper, because all
protocols meet the same draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fedsim.experiment.results import Results, load_results
from fedsim.scenario.scalars import printable

__all__ = ["CONFIDENCE", "METRICS", "compare", "half_width", "run_names"]

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


def compare(results: Sequence[Results | Path | str]) -> pd.DataFrame:
    """A row for each run (its results, or its folder), protocol and accounting, in the order in which they were run.

    Columns: ``run``, ``protocol``, ``accounting``, ``n`` (seeds), and for each of `METRICS` ``<metric>_mean``,
    ``<metric>_half_width`` (of the 95 % interval; empty with one seed) and ``<metric>_n``: over how many seeds, as a
    target may be reached on some only. What no seed has is empty, never 0.

    Raises `UserError` when there is no finished run in a folder.
    """
    opened = [result if isinstance(result, Results) else load_results(result) for result in results]
    rows = [
        {"run": name, "protocol": protocol, "accounting": accounting, "n": len(seeds), **_statistics(seeds)}
        for name, result in zip(run_names(opened), opened, strict=True)
        for (protocol, accounting), seeds in result.summary.groupby(["protocol", "accounting"], sort=False)
    ]
    return pd.DataFrame(rows)


def run_names(results: Sequence[Results]) -> list[str]:
    """How runs are called beside each other: by their scenario, or by their folder where scenarios share a name."""
    names = [result.name for result in results]
    folders = [printable(str(result.folder)) for result in results]
    return [name if names.count(name) == 1 else folder for name, folder in zip(names, folders, strict=True)]


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


def _statistics(seeds: pd.DataFrame) -> dict[str, float]:
    columns: dict[str, float] = {}
    for metric in METRICS:
        known = seeds[metric].dropna().to_list() if metric in seeds else []
        columns[f"{metric}_mean"] = float(np.mean(known)) if known else math.nan
        columns[f"{metric}_half_width"] = half_width(known)
        columns[f"{metric}_n"] = len(known)
    return columns
