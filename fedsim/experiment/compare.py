"""Protocols side by side: means over seeds, each with a 95 % interval.

Left out: differences paired by seed, which are sharper, because all protocols meet the same draws; those of two
protocols are `fedsim.experiment.intervals.difference`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fedsim.errors import UserError
from fedsim.experiment.budgets import Budget, summary_at
from fedsim.experiment.intervals import half_width
from fedsim.experiment.results import Results, load_results
from fedsim.scenario.scalars import printable

__all__ = ["METRICS", "compare", "run_names"]

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


def compare(
    results: Sequence[Results | Path | str], *, at: Budget | None = None, target: float | None = None
) -> pd.DataFrame:
    """A row for each run (its results, or its folder), protocol and accounting, in the order in which they were run.

    *at* takes them as if they had ended when so much was spent, ``("transfer_bytes", 4e9)``; *target* has what that
    accuracy cost, by the rule for `stop.target_accuracy`. With either, closed forms are left out: they are of whole
    runs.

    Columns: ``run``, ``protocol``, ``accounting``, ``n`` (seeds), and for each of `METRICS` ``<metric>_mean``,
    ``<metric>_half_width`` (of the 95 % interval; empty with one seed) and ``<metric>_n``: over how many seeds, as a
    target may be reached on some only. What no seed has is empty, never 0.

    Raises `UserError` when there is no finished run in a folder, and for a budget or a target that cannot be.
    """
    opened = [result if isinstance(result, Results) else load_results(result) for result in results]
    rows = [
        {"run": name, "protocol": protocol, "accounting": accounting, "n": len(seeds), **_statistics(seeds)}
        for name, result in zip(run_names(opened), opened, strict=True)
        for (protocol, accounting), seeds in _summary(result, at, target).groupby(
            ["protocol", "accounting"], sort=False
        )
    ]
    return pd.DataFrame(rows)


def run_names(results: Sequence[Results]) -> list[str]:
    """How runs are called beside each other: by their scenario, or by their folder where scenarios share a name."""
    names = [result.name for result in results]
    folders = [printable(str(result.folder)) for result in results]
    return [name if names.count(name) == 1 else folder for name, folder in zip(names, folders, strict=True)]


def _summary(result: Results, at: Budget | None, target: float | None) -> pd.DataFrame:
    if at is None and target is None:
        return result.summary
    events = result.summary.loc[result.summary["accounting"] == "event", ["protocol", "seed", "accounting"]]
    if events.empty:
        raise UserError(f"{printable(str(result.folder))} has closed forms only, which are of whole runs")
    if result.rounds.empty:
        return events.assign(rounds=0)
    every_run = events.merge(summary_at(result.rounds, at, target), how="left")
    return every_run.assign(rounds=every_run["rounds"].fillna(0))  # some had no round at all


def _statistics(seeds: pd.DataFrame) -> dict[str, float]:
    columns: dict[str, float] = {}
    for metric in METRICS:
        known = seeds[metric].dropna().to_list() if metric in seeds else []
        columns[f"{metric}_mean"] = float(np.mean(known)) if known else math.nan
        columns[f"{metric}_half_width"] = half_width(known)
        columns[f"{metric}_n"] = len(known)
    return columns
