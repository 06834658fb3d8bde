"""The answer of a search: a table of all candidates, and a verdict that claims no more than its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from fedsim.experiment.advise.question import COSTS, MOST_ROUNDS, Question
from fedsim.experiment.advise.search import Trial
from fedsim.experiment.compare import Difference, Spent, difference
from fedsim.experiment.means_over_seeds import means_over_seeds
from fedsim.experiment.sweep.results import cell
from fedsim.metrics.pareto import pareto_front
from fedsim.viz.advice_table import COST_COLUMNS
from fedsim.viz.cells import cell as text_of
from fedsim.viz.human import number, scale, with_half_width

__all__ = ["Answer"]

_NAMES: dict[Spent, str] = {"sim_time_s": "simulated time", "transfer_bytes": "traffic", "round": "rounds"}
_SHOWN = ("best_accuracy", "final_accuracy", *COSTS.values(), "rounds", "sim_time_s", "transfer_bytes")


@dataclass(frozen=True)
class Answer:
    """What the *trials* of a search have come to."""

    question: Question
    trials: Sequence[Trial]
    seeds: Sequence[int]
    short_keys: Sequence[str]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each candidate: those that reached the target on every seed first, the cheapest of them first.

        A column for each varied key, by its short name, empty where the key does not concern the protocol;
        ``protocol``; ``n``, the seeds that it was trained on, and ``reached``, on how many of them it reached the
        target; ``best_accuracy``, ``final_accuracy``, what the target took (``time_to_target_s``, ``bytes_to_target``,
        ``rounds_to_target``) and what it has spent in all, with the endings that `fedsim.compare` has; ``front``,
        whether it is on the Pareto front of what the target took, among all that reached it on every seed; and
        ``left``, why it goes no further.
        """
        rows = [self._row(trial) for trial in self._ordered]
        table = pd.DataFrame(rows)
        costs = [f"{COSTS[column]}_mean" for column in COSTS if column in self.question.within]
        complete = table["left"].eq("") & table["reached"].eq(len(self.seeds))
        front = pareto_front(table[costs].where(complete).to_numpy(dtype=float), (False,) * len(costs))
        table.insert(len(table.columns) - 1, "front", front)
        return table

    @cached_property
    def best(self) -> Trial | None:
        """The cheapest of those that reached the target on most seeds; None where none did."""
        found = self._ordered[0]
        return found if self._reached(found) else None

    @property
    def verdict(self) -> list[str]:
        """What can be said, sentence by sentence."""
        return [*(self._nothing() if self.best is None else self._something(self.best)), *self._limits()]

    # -- the table ------------------------------------------------------------------------------------------------

    def _row(self, trial: Trial) -> dict[str, Any]:
        values = zip(self.short_keys, trial.candidate.values, trial.candidate.concerned, strict=True)
        seeds = len(trial.progress) if any(trial.affords.get(seed, 1) for seed in trial.progress) else 0
        (means,) = means_over_seeds([("", self._summary(trial))]) if seeds else ({},)
        ends = ("mean", "half_width", "n", "median", "above")
        known = {f"{metric}_{end}": means.get(f"{metric}_{end}", math.nan) for metric in _SHOWN for end in ends}
        never = [f"{metric}_{end}" for metric in _SHOWN if metric not in COSTS.values() for end in ends[3:]]
        return {
            **{key: cell(value.value) if concerns else "" for key, value, concerns in values},
            "protocol": trial.candidate.protocol,
            "n": seeds,
            "reached": self._reached(trial),
            **{name: value for name, value in known.items() if name not in never},
            "left": trial.left.said if trial.left else "",
        }

    def _summary(self, trial: Trial) -> pd.DataFrame:
        return pd.DataFrame(
            {"protocol": trial.candidate.key, "seed": seed, **trial.outcome(seed)} for seed in trial.progress
        )

    @cached_property
    def _ordered(self) -> list[Trial]:
        return sorted(self.trials, key=self._place)

    def _place(self, trial: Trial) -> tuple[int, bool, float, float]:
        costs = [trial.cost(seed) for seed in trial.progress if trial.reached(seed)]
        best = [trial.outcome(seed)["best_accuracy"] for seed in trial.progress]
        accuracy = max((one for one in best if not math.isnan(one)), default=-math.inf)
        cost = sum(costs) / len(costs) if costs else math.inf
        return -len(costs), trial.left is not None, cost, -accuracy

    def _reached(self, trial: Trial) -> int:
        return sum(trial.reached(seed) for seed in trial.progress)

    # -- the verdict ----------------------------------------------------------------------------------------------

    def _something(self, best: Trial) -> list[str]:
        reached, seeds = self._reached(best), len(self.seeds)
        costs = [self._spent(best, column) for column in COSTS if column in self.question.within]
        on = f"{reached} of {seeds} seeds" if seeds > 1 else f"seed {self.seeds[0]}"
        first = f"{best.candidate.said} reaches {self.question.target:g} on {on}, in {' and '.join(costs)}."
        finalists = [trial for trial in self.trials if trial is not best and trial.left is None]
        if reached < seeds:
            return [first, "None of the candidates that were trained on all seeds reached it on each of them."]
        rivals = [(trial, self._difference(best, trial)) for trial in finalists if self._reached(trial) == seeds]
        sentences = self._against(best, first, rivals) if rivals else [first, "Nothing else was found to do so."]
        if seeds == 1:
            sentences.append("One seed tells nothing about others; give more with --seeds.")
        missed = [trial for trial in finalists if self._reached(trial) < seeds]
        return sentences + [f"{one.candidate.said} reaches it on {self._reached(one)} of {seeds}." for one in missed]

    def _against(self, best: Trial, first: str, rivals: Sequence[tuple[Trial, Difference]]) -> list[str]:
        """Whether *best* is better than each of its *rivals*."""
        cost = _NAMES[self.question.by]
        close = [(rival, found) for rival, found in rivals if found.sign >= 0]
        if not close:
            less = "; ".join(f"{self._by(found)} less than {rival.candidate.said}" for rival, found in rivals)
            return [first, f"It takes less {cost}, seed by seed: {less}."]
        names = _listed([best, *(rival for rival, _ in close)])
        on = "every seed" if len(self.seeds) > 1 else f"seed {self.seeds[0]}"
        sentences = [f"Undecided between {names}: all of them reach {self.question.target:g} on {on}.", first]
        for rival, found in close if len(self.seeds) > 1 else ():
            if found.mean == 0 == found.half_width:
                sentences.append(f"{rival.candidate.said} takes the same {cost} on every seed.")
            else:
                sentences.append(
                    f"{rival.candidate.said} takes {self._by(found)} more {cost}, seed by seed; this interval of 95 % "
                    "does not exclude 0, and more seeds would tell."
                )
        return sentences

    def _difference(self, best: Trial, rival: Trial) -> Difference:
        """By how much *best* takes more of the cost that decides."""
        both = pd.concat([self._summary(best), self._summary(rival)])
        return difference(both, best.candidate.key, rival.candidate.key, COSTS[self.question.by])

    def _by(self, found: Difference) -> str:
        """The size of a difference, and its interval."""
        column = COST_COLUMNS[self.question.by]
        unit, name = scale(column.quantity, abs(found.mean)) if column.quantity else (1.0, "rounds")
        width = with_half_width(abs(found.mean) / unit, found.half_width / unit)
        return f"{width} {name}"

    def _spent(self, trial: Trial, column: Spent) -> str:
        """What the target took, as the table has it."""
        (row,) = means_over_seeds([("", self._summary(trial))])
        rounds = " rounds" if column == "round" else ""
        return text_of(pd.Series(row), COST_COLUMNS[column]) + rounds

    def _nothing(self) -> list[str]:
        target, budgets = self.question.target, self.question.said
        trained = [trial for trial in self.trials if trial.progress and not math.isnan(_best(trial))]
        if not trained:
            return [
                f"No candidate reaches {target:g} within {budgets}: not one has an evaluation by then.",
                "The table has what a first evaluation takes.",
            ]
        nearest = max(trained, key=_best)
        best = _best(nearest)
        said = f"The nearest is {nearest.candidate.said}, with a best accuracy of {number(best)}"
        said += f" on seed {self.seeds[0]}{_when(nearest)}"
        short = f"{number(target - best)} short" if best < target else "no three more evaluations confirm it by then"
        return [f"No candidate was found to reach {target:g} within {budgets}.", f"{said}: {short}."]

    def _could_go_on(self, trial: Trial) -> bool:
        """Whether its budgets are enough for more rounds than it was given, and it did not reach the target."""
        seed = self.seeds[0]
        if seed not in trial.progress or trial.reached(seed):
            return False
        rounds = trial.progress[seed].rounds["round"]
        last = trial.affords.get(seed, 0 if rounds.empty else int(rounds.iloc[-1]))
        return last > MOST_ROUNDS - trial.candidate.every

    def _limits(self) -> list[str]:
        """What the search does not know."""
        dropped = sum(_is(trial, "dropped") for trial in self.trials)
        dearer = [trial for trial in self.trials if _is(trial, "dearer")]
        sentences = []
        if dearer:
            cost = _NAMES[self.question.by]
            sentences.append(f"On seed {self.seeds[0]} alone it was reached too, at more {cost}, by {_listed(dearer)}.")
        if "round" not in self.question.within and (
            more := [trial for trial in self.trials if self._could_go_on(trial)]
        ):
            sentences.append(
                f"Nothing was trained for more than {MOST_ROUNDS:,} rounds; --within round=... changes that, and "
                f"{_listed(more)} could afford more."
            )
        if dropped:
            some = "1 candidate was" if dropped == 1 else f"{dropped} candidates were"
            sentences.append(
                f"{some} dropped before the budgets were spent; one that starts slowly could have been better."
            )
        return sentences


def _best(trial: Trial) -> float:
    return max((float(trial.outcome(seed)["best_accuracy"]) for seed in trial.progress), default=math.nan)


def _listed(trials: Sequence[Trial]) -> str:
    """Their names; candidates have commas in theirs."""
    return "; ".join(trial.candidate.said for trial in trials)


def _when(trial: Trial) -> str:
    """At which share of its budgets that was, where it was not let go on."""
    return f", {trial.left.said}" if trial.left and _is(trial, "dropped") else ""


def _is(trial: Trial, kind: str) -> bool:
    """Whether that is why it goes no further."""
    return trial.left is not None and trial.left.kind == kind
