"""Candidates, and runs of them that follow a formula: a search without any training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from fedsim.experiment.advise.candidates import Candidate
from fedsim.experiment.advise.question import Question
from fedsim.experiment.advise.runs import Job, Progress
from fedsim.experiment.advise.search import Trial
from fedsim.scenario.load import Varied

QUESTION = Question(0.8, {"sim_time_s": 100.0, "transfer_bytes": 1e6}, "sim_time_s")
Curve = Callable[[int, int], float]
"""Accuracy by seed and round."""


def candidate(name: str, *, foreseen: bool = True, every: int = 1) -> Candidate:
    return Candidate(
        key=name,
        protocol=name,
        values=(Varied("network.rate", name, "--vary"),),
        concerned=(True,),
        said=name,
        only=Varied("protocols", [], "the search"),
        own_stop=None,
        foreseen=foreseen,
        every=every,
    )


def rounds(accuracies: Mapping[int, float], *, round_s: float = 1.0, losses: float = 0.0) -> pd.DataFrame:
    """A table of rounds; accuracies by round, NaN for rounds that were not evaluated."""
    rows = [
        {
            "round": number,
            "sim_time_s": number * round_s,
            "transfer_bytes": number * 1000.0,
            "accuracy": accuracy,
            "loss": accuracy if accuracy != accuracy else 1 - accuracy + losses,
        }
        for number, accuracy in accuracies.items()
    ]
    return pd.DataFrame(rows, columns=["round", "sim_time_s", "transfer_bytes", "accuracy", "loss"])


class Formula:
    """In place of `Runs`: rounds take so long, and accuracies follow curves. Remembers what it was asked for."""

    def __init__(self, curves: Mapping[str, Curve], round_s: Mapping[str, float], alike: Sequence[str] = ()) -> None:
        self.curves, self.round_s, self.alike = curves, round_s, alike
        self.asked: list[Job] = []

    @property
    def trained(self) -> list[tuple[str, int, float]]:
        """Candidate, seed and the round, or the seconds, of each pause."""
        return [(job.candidate.key, job.seed, job.pause[0][1]) for job in self.asked if job.learn]

    def run(self, jobs: Sequence[Job], said: str) -> list[Progress]:
        self.asked += jobs
        return [self._clock(job) if not job.learn else self._training(job) for job in jobs]

    def _clock(self, job: Job) -> Progress:
        each = self.round_s[job.candidate.key]
        last = int(min(job.stop["rounds"], job.stop.get("sim_time_s", math.inf) // each))
        return Progress(rounds({number: float("nan") for number in range(1, last + 1)}, round_s=each), ended=True)

    def _training(self, job: Job) -> Progress:
        name, every = job.candidate.key, job.candidate.every
        ((column, most), *_) = job.pause
        last = int(most if column == "round" else -(-most // self.round_s[name]))
        scores = {number: self.curves[name](job.seed, number) for number in range(every, last + 1, every)}
        distinct = 0.0 if name in self.alike else sum(map(ord, name)) / 1e6
        return Progress(rounds(scores, round_s=self.round_s[name], losses=distinct), ended=False)


def trial(name: str, runs: Mapping[int, pd.DataFrame], question: Question = QUESTION) -> Trial:
    """A finalist with these tables of rounds by seed."""
    return Trial(candidate(name), question, {seed: Progress(table, ended=True) for seed, table in runs.items()})


def reaching(at: int, *, round_s: float = 1.0, high: float = 0.85) -> pd.DataFrame:
    """A run that reaches 0.8 in that round, and holds it."""
    return rounds({number: high if number >= at else 0.5 for number in range(1, at + 4)}, round_s=round_s)
