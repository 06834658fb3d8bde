"""Runs as if they had ended earlier, when so many rounds, seconds or bytes were spent; and what another target cost.

Protocols that spend at different rates are compared by what each had reached at the same expense. Nothing is
interpolated and nothing is trained: it is all in the table of rounds.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import pandas as pd

from fedsim.errors import UserError, nearest
from fedsim.metrics.summary import event_row

__all__ = ["BUDGETS", "Budget", "summary_at"]

Spent: TypeAlias = Literal["round", "sim_time_s", "uplink_bytes", "downlink_bytes", "transfer_bytes", "network_bytes"]
Budget: TypeAlias = tuple[Spent, float]
"""What may be spent of what: ``("transfer_bytes", 4e9)``."""
BUDGETS: tuple[Spent, ...] = get_args(Spent)
"""The columns of a table of rounds that can be a budget."""


def summary_at(rounds: pd.DataFrame, at: Budget | None = None, target: float | None = None) -> pd.DataFrame:
    """The summary of *rounds* (`Results.rounds`, or some of its rows) within the budget *at*, with another *target*.

    A row for each protocol and seed, with the columns of `Results.summary` that follow from rounds; costs are those of
    the last round that ended within the budget, scores those of the last evaluation by then. A run that ended before
    stands as it ended, and one that had not ended a round by then has empty columns. Without *at*, the whole runs;
    without *target*, nothing about a target.

    Raises `UserError` for a budget or a target that cannot be.
    """
    within = rounds if at is None else rounds[rounds[_checked(at)[0]] <= at[1]]
    if target is not None and not 0 < target < 1:
        raise UserError(f"target={target:g} must be an accuracy between 0 and 1, as in 0.8")
    runs = rounds[["protocol", "seed"]].drop_duplicates().itertuples(index=False)
    return pd.DataFrame(
        {
            "protocol": run.protocol,
            "seed": run.seed,
            **event_row(within[(within["protocol"] == run.protocol) & (within["seed"] == run.seed)], target),
        }
        for run in runs
    )


def _checked(at: Budget) -> Budget:
    column, amount = at
    if column not in BUDGETS:
        raise UserError(f"{column!r} is no budget; there is {', '.join(BUDGETS)}{nearest(column, BUDGETS)}")
    if not (math.isfinite(amount) and amount > 0):
        raise UserError(f"{column}={amount:g} must be a finite number above 0")
    return at
