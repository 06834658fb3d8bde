"""A run in one row, the summary: as simulated, and by a closed form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from fedsim.learning.target import first_confirmed
from fedsim.metrics.chosen import chosen_columns
from fedsim.metrics.cost_models.settings import Cost
from fedsim.metrics.tables import CUMULATIVE

__all__ = ["event_row", "formula_row"]


def event_row(rounds: pd.DataFrame, target_accuracy: float | None) -> dict[str, Any]:
    """The summary of a run as simulated; what is not known is NaN."""
    last = rounds.iloc[-1] if len(rounds) else None
    evaluated = rounds.dropna(subset=["loss"])
    reached = _reached(evaluated, target_accuracy)
    return {
        "accounting": "event",
        "rounds": 0 if last is None else int(last["round"]),
        **{name: np.nan if last is None else last.get(name, np.nan) for name in CUMULATIVE},
        "final_accuracy": evaluated["accuracy"].iloc[-1] if len(evaluated) else np.nan,
        "best_accuracy": evaluated["accuracy"].max() if len(evaluated) else np.nan,
        "loss": evaluated["loss"].iloc[-1] if len(evaluated) else np.nan,
        **{name: evaluated[column].iloc[-1] for column, name in _finals(evaluated) if len(evaluated)},
        "target_accuracy": np.nan if target_accuracy is None else float(target_accuracy),
        "time_to_target_s": np.nan if reached is None else reached["sim_time_s"],
        "bytes_to_target": np.nan if reached is None else reached["transfer_bytes"],
        "rounds_to_target": np.nan if reached is None else reached["round"],
    }


def formula_row(event: dict[str, Any], cost: Cost) -> dict[str, Any]:
    """The summary of the same run by a closed form: the same learning, other costs."""
    uplink, downlink = cost.uplink_bytes, cost.downlink_bytes
    of_the_target = ("target_accuracy", "time_to_target_s", "bytes_to_target", "rounds_to_target")
    return {
        **{name: np.nan if name in of_the_target else event[name] for name in event},
        "accounting": "formula",
        "sim_time_s": cost.communication_s + cost.computation_s,
        "uplink_bytes": uplink,
        "downlink_bytes": downlink,
        "transfer_bytes": uplink + downlink,
        "backbone_bytes": np.nan,
        "network_bytes": np.nan,
        "energy_j": np.nan,
        "communication_s": cost.communication_s,
        "computation_s": cost.computation_s,
    }


def _finals(rounds: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Columns of *rounds* whose last value is worth a column of the summary, and what that is called."""
    for ending in ("", *(f"_{test_set}" for test_set in ("global", "clients", "unseen", "own"))):
        for column in (f"accuracy{ending}" if ending else "", f"accuracy_mean{ending}"):
            if column in rounds:
                yield column, f"final_{column}"
        for column in (f"rmse{ending}", f"rmse_mean{ending}"):
            if column in rounds:
                yield column, column
    for column in chosen_columns(map(str, rounds)):
        yield column, column


def _reached(evaluated: pd.DataFrame, target_accuracy: float | None) -> pd.Series | None:
    if target_accuracy is None:
        return None
    position = first_confirmed(evaluated["accuracy"].tolist(), target_accuracy)
    return None if position is None else evaluated.iloc[position]
