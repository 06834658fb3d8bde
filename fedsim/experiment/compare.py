"""Protocols side by side: means over seeds, each with a 95 % interval, of whole runs or at the same expense.

Protocols that spend at different rates are compared by what each had reached when so many rounds, seconds or bytes were
spent, as if they had ended then. Nothing is interpolated and nothing is trained: it is all in the table of rounds.

Differences paired by seed are sharper than two intervals, because all protocols meet the same draws; the table leaves
them out, and `difference` gives those of two protocols.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from fedsim.errors import UserError, nearest, some
from fedsim.experiment.fronts import mark_fronts
from fedsim.experiment.means_over_seeds import means_over_seeds
from fedsim.experiment.results import Results
from fedsim.experiment.several_results import load_several
from fedsim.experiment.sweep_manifest import names_of_points
from fedsim.metrics.intervals import half_width
from fedsim.metrics.summary import event_row
from fedsim.scenario.scalars import printable

__all__ = [
    "BUDGETS",
    "Budget",
    "Difference",
    "attainable",
    "check_budget",
    "check_target",
    "compare",
    "difference",
    "ended_before",
    "needed_at_least",
    "run_names",
    "summary_at",
    "within_budget",
]

Spent: TypeAlias = Literal[
    "round", "sim_time_s", "uplink_bytes", "downlink_bytes", "transfer_bytes", "backbone_bytes", "network_bytes"
]
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
        check_budget(at)
    if target is not None:
        check_target(target)
    target = attainable(rounds, target)
    return pd.DataFrame(
        {"protocol": protocol, "seed": seed, **event_row(run if at is None else within_budget(run, at), target)}
        for (protocol, seed), run in rounds.groupby(["protocol", "seed"], sort=False)
    )


def attainable(rounds: pd.DataFrame, target: float | None) -> float | None:
    """The *target*; None where none of these *rounds* has an accuracy: nothing is learned, or numbers are predicted."""
    return target if rounds["accuracy"].notna().any() else None


def ended_before(rounds: pd.DataFrame, at: Budget) -> list[str]:
    """Protocols of which a run ended although one more round would still have been within the budget."""
    column, amount = at
    return [
        str(protocol)
        for protocol, runs in rounds.groupby("protocol", sort=False)
        if any(run[column].iloc[-1] + _largest_round(run[column]) <= amount for _, run in runs.groupby("seed"))
    ]


def needed_at_least(rounds: pd.DataFrame, at: Budget) -> dict[str, float]:
    """What each protocol needs until all its seeds have an evaluation, where the budget is too little for that.

    Where nothing was evaluated at all, until they have a round.
    """
    column, amount = at
    scored = rounds if rounds["loss"].isna().all() else rounds[rounds["loss"].notna()]
    firsts = scored.groupby(["protocol", "seed"], sort=False)[column].min()
    needed = firsts.groupby("protocol", sort=False).max()
    return {str(protocol): float(value) for protocol, value in needed.items() if value > amount}


def _largest_round(spent: pd.Series[float]) -> float:
    return float(spent.diff().fillna(spent).max())  # the first round has spent all that is there after it


def within_budget(run: pd.DataFrame, at: Budget) -> pd.DataFrame:
    """The rounds of one run up to the last one that was evaluated within the budget *at*; see `summary_at`."""
    affordable = run[run[at[0]] <= at[1]]
    if run["loss"].isna().all():
        return affordable
    last = affordable.loc[affordable["loss"].notna(), "round"].max()  # NaN, and so no round at all, when there is none
    until_then: pd.DataFrame = affordable[affordable["round"] <= last]
    return until_then


def check_target(target: float) -> None:
    """Raise `UserError` unless *target* is an accuracy between 0 and 1."""
    if not (_is_number(target) and 0 < target < 1):
        raise UserError(f"target={target!r} must be an accuracy between 0 and 1, as in 0.8")


def check_budget(at: Budget) -> None:
    """Raise `UserError` unless *at* is one of `BUDGETS` and a finite amount above 0."""
    if not (isinstance(at, tuple | list) and len(at) == 2 and isinstance(at[0], str)):
        raise UserError(f'at={at!r} must be a column and an amount, as in ("transfer_bytes", 4e9)')
    column, amount = at
    if column not in BUDGETS:
        raise UserError(f"{column!r} is no budget; there is {', '.join(BUDGETS)}{nearest(column, BUDGETS)}")
    if not (_is_number(amount) and math.isfinite(amount) and amount > 0):
        raise UserError(f"{column}={amount!r} must be a finite number above 0")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def compare(
    results: Sequence[Results | Path | str], *, at: Budget | None = None, target: float | None = None
) -> pd.DataFrame:
    """A row for each run (its results, or its folder), protocol and accounting, in the order in which they were run.

    *at* takes them as if they had ended when so much was spent, ``("transfer_bytes", 4e9)``; *target* has what that
    accuracy cost, by the rule for `stop.target_accuracy`. With either, closed forms are left out: they are of whole
    runs.

    Columns: ``run``, ``protocol``, ``accounting``, ``n`` (seeds), ``target_accuracy``, and for each of `METRICS`
    ``<metric>_mean``, ``<metric>_half_width`` (of the 95 % interval; empty with one seed) and ``<metric>_n``: over how
    many seeds. The same of each metric that ``evaluate.metrics`` has chosen in any of the runs. What no seed has is
    empty, never 0.

    What was spent until the target has a mean only if all seeds reached it. It has more columns: ``<metric>_median``,
    the Kaplan-Meier median, in which seeds that missed the target count as censored at their end; the ends of its
    interval, ``_median_low`` and ``_median_high``, each empty where there is none; and ``_above``, a bound where there
    is no median (`fedsim.metrics.kaplan_meier`).

    ``front_time`` and ``front_bytes`` say whether the row is on the Pareto front of all rows (`mark_fronts`).

    Raises `UserError` when there is no run, or no finished one in a folder, and for a budget or a target that cannot
    be.
    """
    opened = load_several(results)
    summaries = [_summary(result, at, target) for result in opened]
    return mark_fronts(pd.DataFrame(means_over_seeds(zip(run_names(opened), summaries, strict=True))))


def run_names(results: Sequence[Results]) -> list[str]:
    """How runs are called beside each other: by their scenario, and points of a sweep by what it varies.

    Where two would be called alike, points have the name of their scenario before that, and all others their folder.
    """
    names = [result.name for result in results]
    folders = [printable(str(result.folder)) for result in results]
    points = names_of_points([result.folder for result in results])
    ways = [
        [name, folder] if point is None else [point, f"{name}: {point}", folder]
        for name, point, folder in zip(names, points, folders, strict=True)
    ]
    chosen = [way[0] for way in ways]
    for step in (1, 2):
        times = Counter(chosen)
        chosen = [
            name if times[name] == 1 else way[min(step, len(way) - 1)] for name, way in zip(chosen, ways, strict=True)
        ]
    return chosen if len(set(chosen)) == len(chosen) else folders  # a scenario may be called as a folder is


def _summary(result: Results, at: Budget | None, target: float | None) -> pd.DataFrame:
    if at is None and target is None:
        return result.summary
    events = result.summary[result.summary["accounting"] == "event"]
    if events.empty:
        raise UserError(f"{printable(str(result.folder))} has closed forms only, which are of whole runs")
    run = ["protocol", "seed", "accounting"]
    nothing = events[run].head(0).assign(rounds=0)
    found = nothing if result.rounds.empty else summary_at(result.rounds, at, target)
    known = events[run] if at else events.drop(columns=[*found.columns.difference(run)], errors="ignore")
    every_run = known.merge(found, on=run, how="left")
    with_target = every_run.get("target_accuracy", pd.Series(dtype=float)).max()
    return every_run.assign(rounds=every_run["rounds"].fillna(0), target_accuracy=with_target)  # some had no round


@dataclass(frozen=True)
class Difference:
    """By how much a number is larger for one protocol than for another, paired by seed."""

    mean: float
    half_width: float
    """Half of the 95 % interval; NaN with one seed."""
    n: int
    """Seeds on which both have a value."""
    of: int
    """Seeds on which both were run. More than `n` where a target was missed: the others are then the fast ones."""

    @property
    def sign(self) -> Literal[1, 0, -1]:
        """1 or -1 when the whole interval is on that side of zero; 0 while it is not, and with one seed."""
        if not abs(self.mean) > self.half_width:
            return 0
        return 1 if self.mean > 0 else -1


def difference(summary: pd.DataFrame, one: str, other: str, metric: str = "final_accuracy") -> Difference:
    """By how much *metric* is larger for protocol *one* than for *other*, seed by seed.

    On a seed all protocols meet the same data, the same start and the same draws; pairing takes out what that does to
    both, so the interval is narrower than those of the two means. Seeds that have a value of one only do not count: by
    how much a protocol that reached a target is faster than one that missed it, nobody knows. `Difference.of` tells how
    many there are. Where both are infinite there is no difference (NaN). *summary* is a table like `Results.summary`,
    of which the rows with accounting ``event`` count. Raises `UserError` when a column or a protocol is not there, a
    run stands twice, or no seed has a value of both.

    >>> seeds = pd.DataFrame({"protocol": list("aabb"), "seed": [1, 2, 1, 2], "final_accuracy": [0.8, 0.7, 0.7, 0.61]})
    >>> found = difference(seeds.assign(accounting="event"), "a", "b")
    >>> round(found.mean, 3), round(found.half_width, 4), found.n, found.of, found.sign
    (0.095, 0.0635, 2, 2, 1)
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
    both = events.groupby("seed")["protocol"].agg(lambda run: {one, other} <= {*run}).sum()
    return Difference(float(np.mean(differences)), half_width(differences), len(differences), int(both))
