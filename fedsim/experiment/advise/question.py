"""What is asked: an accuracy, what may be spent until it is reached, and which cost decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from fedsim.errors import UserError, nearest
from fedsim.experiment.compare import BUDGETS, Spent, check_budget, check_target, within_budget
from fedsim.metrics.summary import event_row
from fedsim.protocols.run_loop import Stop
from fedsim.scenario.schema import Scenario
from fedsim.viz.human import duration, number, size

__all__ = ["COSTS", "MOST_ROUNDS", "Question", "amount", "ask"]

MOST_ROUNDS = 1_000
"""Of a candidate on a seed, where no budget of rounds is given: a round may cost next to nothing."""

COSTS: dict[Spent, str] = {
    "sim_time_s": "time_to_target_s",
    "transfer_bytes": "bytes_to_target",
    "round": "rounds_to_target",
}
"""Budgets at which a run can be stopped, and the column of a summary with what the target took of each."""
_STOPS: dict[Spent, str] = {"sim_time_s": "sim_time_s", "transfer_bytes": "transfer_bytes", "round": "rounds"}
"""Where each stands in the scenario's section ``stop``."""


@dataclass(frozen=True)
class Question:
    """An accuracy and budgets."""

    target: float
    within: Mapping[Spent, float]
    by: Spent
    """The cost that decides, one of `COSTS`."""

    @property
    def stop(self) -> dict[str, float]:
        """The budgets as a section ``stop``, as far as a run can be stopped at them; with a number of rounds."""
        found = {key: self.within[column] for column, key in _STOPS.items() if column in self.within}
        return {**found, "rounds": self.most_rounds}

    @property
    def most_rounds(self) -> int:
        """How many rounds a candidate may take."""
        return int(self.within.get("round", MOST_ROUNDS))

    def affordable(self, rounds: pd.DataFrame) -> pd.DataFrame:
        """The *rounds* of one run up to the last evaluation within all budgets; without evaluations, within them all.

        A budget of which the table has no column is left out.
        """
        for column, most in self.within.items():
            if column in rounds:
                rounds = within_budget(rounds, (column, most))
        return rounds

    def outcome(self, rounds: pd.DataFrame) -> dict[str, Any]:
        """The summary of one run's *rounds*, as of `fedsim.experiment.compare.summary_at`."""
        return event_row(rounds, self.target)

    @property
    def said(self) -> str:
        """The budgets, for people."""
        return " and ".join(amount(column, most) for column, most in self.within.items())


def amount(column: Spent, value: float) -> str:
    """So much of a budget, for people.

    >>> amount("sim_time_s", 28800), amount("transfer_bytes", 1e9), amount("round", 60), amount("network_bytes", 5e6)
    ('8 h', '1 GB', '60 rounds', '5 MB on all links')
    >>> amount("round", 1)
    '1 round'
    """
    if column == "sim_time_s":
        return duration(value)
    if column == "round":
        return "1 round" if value == 1 else f"{number(value)} rounds"
    where = {"transfer_bytes": "", "uplink_bytes": " up", "downlink_bytes": " down"}
    where |= {"backbone_bytes": " on the backbone", "network_bytes": " on all links"}
    return f"{size(value)}{where[column]}"


def ask(target: float, within: Mapping[str, float], by: str | None, scenario: Scenario) -> Question:
    """The question, checked. Without budgets, those of the scenario's ``stop`` are meant.

    Raises `UserError` for a target or a budget that cannot be, and when no run could be stopped at any of them.
    """
    check_target(target)
    for column, most in within.items():
        check_budget((column, most))  # type: ignore[arg-type]
    if "round" in within and within["round"] < 1:
        raise UserError(f"round={within['round']:g} must be at least 1")
    budgets: dict[Spent, float] = {column: within[column] for column in within}  # type: ignore[misc]
    if "round" in budgets:
        budgets["round"] = float(int(budgets["round"]))
    if not budgets:
        budgets = _of_scenario(scenario)
    costs = [column for column in budgets if column in COSTS]
    if not costs:
        raise UserError(
            f"--within: a run cannot be stopped at {' or '.join(budgets)}; give {', '.join(COSTS)} too, or one of them"
        )
    if by is not None and by not in COSTS:
        raise UserError(f"--by: {by!r} must be one of {', '.join(COSTS)}{nearest(by, BUDGETS)}")
    return Question(float(target), budgets, costs[0] if by is None else by)


def _of_scenario(scenario: Scenario) -> dict[Spent, float]:
    for protocol in scenario.protocols:
        with scenario.about(*scenario.place_of(protocol)):
            if protocol.stop is not None:
                raise UserError(
                    f"{protocol.title!r} has a stop of its own, so candidates would have different budgets; give "
                    "--within, as in --within sim_time_s=28800"
                )
    stop: Stop = scenario.stop
    found: dict[Spent, float] = {
        column: float(value) for column, key in _STOPS.items() if (value := getattr(stop, key)) is not None
    }
    with scenario.about("stop"):
        if not found:
            raise UserError(
                "is a target alone; give a budget, as in --within sim_time_s=28800, so that a candidate that never "
                "reaches the target ends"
            )
    return found
