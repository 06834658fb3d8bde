"""Means over seeds, each with a 95 % interval, and medians of what the seeds needed to reach a target.

The interval of a mean is Student's: it takes the values as independent and normally distributed. A seed that did not
reach its target has no value, only a bound. So there is a mean if all have reached it, and the Kaplan-Meier median in
any case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from fedsim.metrics.chosen import chosen_columns
from fedsim.metrics.intervals import half_width
from fedsim.metrics.kaplan_meier import kaplan_meier_median

__all__ = ["METRICS", "TO_TARGET", "means_over_seeds"]

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
    "backbone_bytes",
    "network_bytes",
    "energy_j",
    "rounds",
    "time_to_target_s",
    "bytes_to_target",
    "rounds_to_target",
    "communication_s",
    "computation_s",
    "filters_share",
    "flops_share",
    "present_share",
    "kept_accuracy",
    "inference_s",
    "kept_inference_s",
    "target_met",
    "newcomers",
    "newcomers_accuracy",
    "newcomers_rmse",
    "newcomers_s",
    "newcomers_bytes",
)
"""Columns of a summary that are averaged over seeds, beside those of chosen metrics."""


TO_TARGET = {"time_to_target_s": "sim_time_s", "bytes_to_target": "transfer_bytes", "rounds_to_target": "rounds"}
"""Of `METRICS`: what was spent until the target, and what a run has spent at its end that did not reach it."""


def means_over_seeds(summaries: Iterable[tuple[str, pd.DataFrame]]) -> list[dict[str, Any]]:
    """A row for each run, protocol and accounting, with the columns of `fedsim.compare`, from names and summaries.

    Chosen metrics have columns where any of the summaries has them.
    """
    named = list(summaries)
    metrics = dict.fromkeys([*METRICS, *(name for _, summary in named for name in chosen_columns(map(str, summary)))])
    return [
        {
            **{"run": run, "protocol": protocol, "accounting": accounting, "n": len(seeds)},
            "target_accuracy": seeds["target_accuracy"].max() if "target_accuracy" in seeds else math.nan,
            **_statistics(seeds, metrics, had_target=accounting == "event" and _has_target(seeds, summary)),
        }
        for run, summary in named
        for (protocol, accounting), seeds in summary.groupby(["protocol", "accounting"], sort=False)
    ]


def _has_target(seeds: pd.DataFrame, summary: pd.DataFrame) -> bool:
    """Whether these *seeds* could have reached a target; older summaries tell only if any of their runs has."""
    if "target_accuracy" in seeds:
        return bool(seeds["target_accuracy"].notna().any())
    return bool(summary[[metric for metric in TO_TARGET if metric in summary]].notna().any(axis=None))


def _statistics(seeds: pd.DataFrame, metrics: Iterable[str], *, had_target: bool) -> dict[str, float]:
    columns: dict[str, float] = {}
    for metric in metrics:
        known = seeds[metric].dropna().to_list() if metric in seeds else []
        averaged = known if metric not in TO_TARGET or len(known) == len(seeds) else []
        columns[f"{metric}_mean"] = float(np.mean(averaged)) if averaged else math.nan
        columns[f"{metric}_half_width"] = half_width(averaged)
        columns[f"{metric}_n"] = len(known)
        if metric in TO_TARGET:
            columns |= {f"{metric}_{end}": value for end, value in _median(seeds, metric, had_target)}
    return columns


def _median(seeds: pd.DataFrame, metric: str, had_target: bool) -> Iterator[tuple[str, float]]:
    """What the seeds needed; one whose model diverged will never reach the target."""
    ends = ("median", "median_low", "median_high", "above")
    if not had_target:
        yield from dict.fromkeys(ends, math.nan).items()
        return
    spent = seeds[TO_TARGET[metric]].astype(float).mask(seeds["loss"] == math.inf, math.inf)
    found = kaplan_meier_median(seeds[metric].to_list(), spent.to_list())
    yield from zip(ends, (found.value, found.low, found.high, found.above), strict=True)
