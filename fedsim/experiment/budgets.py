"""Runs as if they had ended earlier, when so many rounds, seconds or bytes were spent; and what another target cost.

Protocols that spend at different rates are compared by what each had reached at the same expense. Nothing is
interpolated and nothing is trained: it is all in the table of rounds.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias, get_args

import pandas as pd

from fedsim.errors import UserError, nearest
from fedsim.metrics.tables import event_row

__all__ = ["BUDGETS", "Budget", "ended_before", "summary_at"]

Spent: TypeAlias = Literal["round", "sim_time_s", "uplink_bytes", "downlink_bytes", "transfer_bytes", "network_bytes"]
Budget: TypeAlias = tuple[Spent, float]
"""What may be spent of what: ``("transfer_bytes", 4e9)``."""
BUDGETS: tuple[Spent, ...] = get_args(Spent)
"""The columns of a table of rounds that can be a budget."""


def summary_at(rounds: pd.DataFrame, at: Budget | None = None, target: float | None = None) -> pd.DataFrame:
    """The summary of *rounds* (`Results.rounds`, or some of its rows) within the budget *at*, with another *target*.

    A row for each protocol and seed, with the columns of `Results.summary` that follow from rounds. Within a budget a
    run stands as it was when it was last evaluated by then, costs and scores alike; one that was never evaluated, after
    the last round that ended by then. A run that ended before stands as it ended (`ended_before` tells), and one that
    has nothing by then has 0 rounds and empty columns. Without *at*, the whole runs; without *target*, nothing about a
    target.

    Raises `UserError` for a budget or a target that cannot be.
    """
    if at is not None:
        _check(at)
    if target is not None and not 0 < target < 1:
        raise UserError(f"target={target:g} must be an accuracy between 0 and 1, as in 0.8")
    return pd.DataFrame(
        {"protocol": protocol, "seed": seed, **event_row(run if at is None else _within(run, at), target)}
        for (protocol, seed), run in rounds.groupby(["protocol", "seed"], sort=False)
    )


def ended_before(rounds: pd.DataFrame, at: Budget) -> list[str]:
    """Protocols of which a run ended although one more round would still have been within the budget."""
    column, amount = at
    return [
        str(protocol)
        for protocol, runs in rounds.groupby("protocol", sort=False)
        if any(run[column].iloc[-1] + run[column].diff().max() <= amount for _, run in runs.groupby("seed"))
    ]


def _within(run: pd.DataFrame, at: Budget) -> pd.DataFrame:
    affordable = run[run[at[0]] <= at[1]]
    if run["loss"].isna().all():
        return affordable
    last = affordable.loc[affordable["loss"].notna(), "round"].max()  # NaN, and so no round at all, when there is none
    until_then: pd.DataFrame = affordable[affordable["round"] <= last]
    return until_then


def _check(at: Budget) -> None:
    column, amount = at
    if column not in BUDGETS:
        raise UserError(f"{column!r} is no budget; there is {', '.join(BUDGETS)}{nearest(column, BUDGETS)}")
    if not (math.isfinite(amount) and amount > 0):
        raise UserError(f"{column}={amount:g} must be a finite number above 0")
