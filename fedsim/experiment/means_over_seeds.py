"""Means over seeds, each with a 95 % interval.

The interval is Student's: it takes the values as independent and normally distributed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

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
