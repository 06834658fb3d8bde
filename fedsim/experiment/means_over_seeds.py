"""Means over seeds, each with a 95 % interval.

The interval is Student's: it takes the values as independent and normally distributed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from fedsim.metrics.chosen import chosen_columns
from fedsim.metrics.intervals import half_width

__all__ = ["METRICS", "means_over_seeds"]

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


def means_over_seeds(summaries: Iterable[tuple[str, pd.DataFrame]]) -> list[dict[str, Any]]:
    """A row for each run, protocol and accounting, with the columns of `fedsim.compare`, from names and summaries.

    Chosen metrics have columns where any of the summaries has them.
    """
    named = list(summaries)
    metrics = dict.fromkeys([*METRICS, *(name for _, summary in named for name in chosen_columns(map(str, summary)))])
    return [
        {"run": run, "protocol": protocol, "accounting": accounting, "n": len(seeds), **_statistics(seeds, metrics)}
        for run, summary in named
        for (protocol, accounting), seeds in summary.groupby(["protocol", "accounting"], sort=False)
    ]


def _statistics(seeds: pd.DataFrame, metrics: Iterable[str]) -> dict[str, float]:
    columns: dict[str, float] = {}
    for metric in metrics:
        known = seeds[metric].dropna().to_list() if metric in seeds else []
        columns[f"{metric}_mean"] = float(np.mean(known)) if known else math.nan
        columns[f"{metric}_half_width"] = half_width(known)
        columns[f"{metric}_n"] = len(known)
    return columns
