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
from typing import Any

import pandas as pd

from fedsim.experiment.advise.candidates import Candidate
from fedsim.experiment.advise.question import COSTS, Question, amount
from fedsim.experiment.advise.runs import Job, Progress, Runs
from fedsim.experiment.compare import Budget

__all__ = ["SHARES", "Trial", "search"]

SHARES = (0.25, 0.5, 1.0)
"""Of its budgets: what a candidate may spend on the first seed, from rung to rung."""
FEWEST = 2
"""Trainings that go on from a rung, if there are as many."""


@dataclass
class Trial:
    """What has become of a candidate."""

    candidate: Candidate
    question: Question
    progress: dict[int, Progress] = field(default_factory=dict)
    """By seed, as far as it was trained; within the budgets."""
    affords: dict[int, int] = field(default_factory=dict)
    """By seed: the rounds that its budgets are enough for; where that is not known before, nothing."""
    left: str | None = None
    """Why it goes no further; None for those that were trained on every seed."""

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
            trial.left = "misses it"
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
    """Find out which rounds each can afford, and leave those that afford none."""
    foreseen = [trial for trial in trials if trial.candidate.foreseen]
    if not foreseen:
        return
    stop = foreseen[0].question.stop
    asked = [Job(trial.candidate, seed, stop, learn=False) for trial in foreseen]
    for trial, found in zip(foreseen, runs.run(asked, "clocks"), strict=True):
        trial.affords[seed] = len(trial.question.affordable(found.rounds))
        if not trial.affords[seed]:
            trial.progress[seed] = Progress(found.rounds.head(0), ended=True)
    too_slow = [trial for trial in foreseen if not trial.affords[seed]]
    if not too_slow:
        return
    asked = [Job(trial.candidate, seed, {"rounds": 1}, learn=False) for trial in too_slow]
    for trial, found in zip(too_slow, runs.run(asked, "first rounds"), strict=True):
        if trial.left is None and len(trial.progress) == 1:  # on the first seed
            trial.left = _why_none(trial.question, found.rounds)


def _why_none(question: Question, rounds: pd.DataFrame) -> str:
    """Why not even the first of the *rounds* is affordable."""
    if rounds.empty:
        return "no round of it ends"
    needs = [
        amount(column, float(rounds[column].iloc[0]))
        for column, most in question.within.items()
        if rounds[column].iloc[0] > most
    ]
    return f"its first round takes {' and '.join(needs)}"


# -- with training ----------------------------------------------------------------------------------------------------


def _train(trials: Sequence[Trial], seed: int, share: float, runs: Runs, said: str) -> None:
    """Let each spend the *share* of its budgets, unless it has ended before."""
    going_on = [trial for trial in trials if seed not in trial.progress or not trial.progress[seed].ended]
    _run([(trial, _job(trial, seed, share)) for trial in going_on], runs, said)


def _train_on(trials: Sequence[Trial], seeds: Sequence[int], runs: Runs) -> None:
    """Let each spend all of its budgets on all of these *seeds*, but those on which it affords nothing."""
    jobs = [(trial, _job(trial, seed, 1.0)) for seed in seeds for trial in trials if seed not in trial.progress]
    _run(jobs, runs, "further seeds")


def _run(jobs: Sequence[tuple[Trial, Job]], runs: Runs, said: str) -> None:
    """Those that go furthest begin: whoever trains the same finds all of it, and nobody has to begin again."""
    ordered = sorted(jobs, key=lambda one: -_goes_to(one[1]))
    if not ordered:
        return
    for (trial, job), found in zip(ordered, runs.run([job for _, job in ordered], said), strict=True):
        trial.progress[job.seed] = Progress(trial.question.affordable(found.rounds), found.ended)


def _job(trial: Trial, seed: int, share: float) -> Job:
    """What it is run for. Where its clock is known, a run ends with the last round that it can afford."""
    candidate, question = trial.candidate, trial.question
    affords = trial.affords.get(seed)
    pause: tuple[Budget, ...] = ()
    if affords is None:
        stop = question.stop
        if share < 1:
            pause = tuple((column, share * most) for column, most in question.within.items() if column in COSTS)
    else:
        stop = {"rounds": affords}
        until = candidate.every * math.ceil(share * affords / candidate.every)
        if share < 1 and until < affords:
            pause = (("round", until),)
    return Job(candidate, seed, {**stop, "target_accuracy": question.target}, pause=pause)


def _goes_to(job: Job) -> float:
    """The round to which it goes, as far as that is known."""
    return dict(job.pause).get("round", job.stop.get("rounds", math.inf))


# -- who goes on ------------------------------------------------------------------------------------------------------


def _halve(trials: Sequence[Trial], seed: int, share: float) -> None:
    """Leave all but the better half of the trainings, and say so."""
    trainings = _trainings(trials, seed)
    for training in trainings[max(FEWEST, math.ceil(len(trainings) / 2)) :]:
        for trial in training:
            if trial.reached(seed):
                trial.left = f"reached on seed {seed}, at more cost"
            elif trial.progress[seed].ended:
                trial.left = "misses it"
            else:
                trial.left = f"dropped at {share:.0%} of its budget"


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
