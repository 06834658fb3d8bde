"""The search: what costs nothing first, then successive halving over rounds, then over seeds.

A candidate's clock needs no training, so it is run first: how many rounds can it afford? Then all candidates that
afford one train for a share of that on the first seed, and the better half goes on to a larger share: successive
halving (K. Jamieson and A. Talwalkar, *Non-stochastic Best Arm Identification and Hyperparameter Optimization*, AISTATS
2016; the inner loop of Hyperband, L. Li et al., JMLR 18, 2018). Those that reach the target are halved once more by
what it cost, and train on all other seeds.

What is halved are *trainings*: candidates that have learned the same so far, to the last bit, such as one protocol on
several radios, train once for all of them, so they stay or go together. Two trainings at least go on, or there would be
nothing to compare.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from fedsim.experiment.advise.candidates import Candidate
from fedsim.experiment.advise.question import COSTS, Question, amount
from fedsim.experiment.advise.runs import Job, Progress, Runs
from fedsim.experiment.compare import Budget

__all__ = ["SHARES", "Left", "Trial", "search"]

SHARES = (0.25, 0.5, 1.0)
"""Of its budgets: what a candidate may spend on the first seed, from rung to rung."""
FEWEST = 2
"""Trainings that go on from a rung, if there are as many."""


@dataclass(frozen=True)
class Left:
    """Why a candidate goes no further."""

    kind: Literal["unaffordable", "missed", "dropped", "dearer"]
    """``missed``: it has spent its budgets; ``dropped``: others were better; ``dearer``: they reached it for less."""
    said: str


@dataclass
class Trial:
    """What has become of a candidate."""

    candidate: Candidate
    question: Question
    progress: dict[int, Progress] = field(default_factory=dict)
    """By seed, as far as it was trained; within the budgets."""
    affords: dict[int, int] = field(default_factory=dict)
    """By seed: the last round to be evaluated within its budgets; where that is not known before, nothing."""
    left: Left | None = None
    """None for those that were trained on every seed."""

    def outcome(self, seed: int) -> dict[str, Any]:
        """Its summary on a seed; see `Question.outcome`."""
        return self.question.outcome(self.progress[seed].rounds)

    def cost(self, seed: int) -> float:
        """What the target took on a seed, of the cost that decides; NaN where it was not reached."""
        return float(self.outcome(seed)[COSTS[self.question.by]])

    def reached(self, seed: int) -> bool:
        """Whether it reached the target on a seed, within the budgets."""
        return not math.isnan(self.cost(seed))

    def rank(self, seed: int) -> tuple[bool, float]:
        """The smaller the better: by cost if it has reached the target, else by its best accuracy, and after those."""
        if self.reached(seed):
            return False, self.cost(seed)
        best = self.outcome(seed)["best_accuracy"]
        return True, math.inf if math.isnan(best) else -best

    def trained_like(self, other: Trial, seed: int) -> bool:
        """Whether both have the same losses, to the last bit, at all evaluations that both have."""
        own, others = (_losses(trial.progress[seed].rounds) for trial in (self, other))
        common = own.keys() & others.keys()
        return bool(common) and all(own[number] == others[number] for number in common)


def search(candidates: Sequence[Candidate], question: Question, seeds: Sequence[int], runs: Runs) -> list[Trial]:
    """Find out which of the *candidates* answer the *question*, with little training; a trial for each, in order."""
    first, *others = seeds
    trials = [Trial(candidate, question) for candidate in candidates]
    _look_at_the_clock(trials, first, runs)
    for number, share in enumerate(SHARES, start=1):
        going_on = _still_in(trials)
        _train(going_on, first, share, runs, f"rung {number} of {len(SHARES)}")
        if share < 1:
            _halve(going_on, first, share)
    for trial in _still_in(trials):
        if not trial.reached(first):
            trial.left = _missed(trial, first)
    _halve(_still_in(trials), first, 1.0)
    finalists = _still_in(trials)
    for seed in others:
        _look_at_the_clock(finalists, seed, runs)
    _train_on(finalists, others, runs)
    return trials


def _still_in(trials: Iterable[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.left is None]


# -- without training -------------------------------------------------------------------------------------------------


def _look_at_the_clock(trials: Sequence[Trial], seed: int, runs: Runs) -> None:
    """Find out which evaluations each can afford, and leave those that afford none."""
    foreseen = [trial for trial in trials if trial.candidate.foreseen]
    too_slow = []
    asked = [Job(trial.candidate, seed, trial.question.stop, learn=False) for trial in foreseen]
    for trial, found in zip(foreseen, runs.run(asked, "clocks"), strict=True):
        every = trial.candidate.every
        trial.affords[seed] = len(trial.question.affordable(found.rounds)) // every * every
        if not trial.affords[seed]:
            trial.progress[seed] = Progress(found.rounds.head(0), ended=True)
            too_slow.append(trial)
    first_on_this_seed = [trial for trial in too_slow if len(trial.progress) == 1]
    asked = [Job(one.candidate, seed, {"rounds": one.candidate.every}, learn=False) for one in first_on_this_seed]
    for trial, found in zip(first_on_this_seed, runs.run(asked, "first evaluations"), strict=True):
        trial.left = Left("unaffordable", _why_none(trial, found.rounds))


def _why_none(trial: Trial, rounds: pd.DataFrame) -> str:
    """Why not even the first evaluation is affordable, by the *rounds* until then."""
    every = trial.candidate.every
    if len(rounds) < every:
        return "never evaluated"
    needs = [
        amount(column, float(rounds[column].iloc[-1]))
        for column, most in trial.question.within.items()
        if rounds[column].iloc[-1] > most
    ]
    first = "round" if every == 1 else "evaluation"
    return f"first {first} takes {' and '.join(needs)}"


# -- with training ----------------------------------------------------------------------------------------------------


def _train(trials: Sequence[Trial], seed: int, share: float, runs: Runs, said: str) -> None:
    """Let each spend the *share* of its budgets, unless it has ended before."""
    going_on = [trial for trial in trials if seed not in trial.progress or not trial.progress[seed].ended]
    _run([_job(trial, seed, share) for trial in going_on], runs, said)


def _train_on(trials: Sequence[Trial], seeds: Sequence[int], runs: Runs) -> None:
    """Let each spend all of its budgets on all of these *seeds*, but those on which it affords nothing."""
    jobs = [_job(trial, seed, 1.0) for seed in seeds for trial in trials if seed not in trial.progress]
    _run(jobs, runs, "further seeds")


def _run(jobs: Sequence[tuple[Trial, Job, bool]], runs: Runs, said: str) -> None:
    """Those that go furthest begin: whoever trains the same finds all of it, and nobody has to begin again."""
    ordered = sorted(jobs, key=lambda one: -dict(one[1].pause).get("round", math.inf))
    for (trial, job, to_the_end), found in zip(ordered, runs.run([job for _, job, _ in ordered], said), strict=True):
        rounds = trial.question.affordable(found.rounds)
        trial.progress[job.seed] = Progress(rounds, found.ended or to_the_end)


def _job(trial: Trial, seed: int, share: float) -> tuple[Trial, Job, bool]:
    """What it is run for: until the target, with a pause when the *share* is spent; and whether that is all."""
    candidate, question = trial.candidate, trial.question
    affords = trial.affords.get(seed)
    until: tuple[Budget, ...]
    if affords is None:
        budgets = {**question.within, "round": question.most_rounds}
        until = tuple((column, share * most) for column, most in budgets.items() if column in COSTS)
    else:
        until = (("round", min(affords, candidate.every * math.ceil(share * affords / candidate.every))),)
    everything = share == 1 or until == (("round", affords),)
    return trial, Job(candidate, seed, {"target_accuracy": question.target}, pause=until), everything


# -- who goes on ------------------------------------------------------------------------------------------------------


def _halve(trials: Sequence[Trial], seed: int, share: float) -> None:
    """Leave all but the better half of the trainings, and say so."""
    trainings = _trainings(trials, seed)
    for training in trainings[max(FEWEST, math.ceil(len(trainings) / 2)) :]:
        for trial in training:
            if trial.reached(seed):
                trial.left = Left("dearer", f"dearer on seed {seed}")
            elif trial.progress[seed].ended:
                trial.left = _missed(trial, seed)
            else:
                trial.left = Left("dropped", f"dropped at {100 * share:g} %")


def _missed(trial: Trial, seed: int) -> Left:
    """It has spent its budgets."""
    touched = trial.outcome(seed)["best_accuracy"] >= trial.question.target
    return Left("missed", "too late to hold it" if touched else "misses it")


def _trainings(trials: Sequence[Trial], seed: int) -> list[list[Trial]]:
    """The *trials*, those together that have learned the same; the best first, in each and among all."""
    found: list[list[Trial]] = []
    for trial in sorted(trials, key=lambda one: one.rank(seed)):
        same = next((training for training in found if training[0].trained_like(trial, seed)), None)
        if same is None:
            found.append([trial])
        else:
            same.append(trial)
    return found


def _losses(rounds: pd.DataFrame) -> dict[int, float]:
    evaluated = rounds.dropna(subset=["loss"])
    return dict(zip(evaluated["round"].astype(int), evaluated["loss"].astype(float), strict=True))
