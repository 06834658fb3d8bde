"""Who does the jobs of an executor: this process, or workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsim.learning.executors.selecting import selects, trained_and_selected
from fedsim.learning.executors.trainer import Deliver, Score, TensorDict, Trainer, as_made
from fedsim.learning.executors.wave import Change, Extraction, Wave
from fedsim.learning.operations.extract import SEMANTICS

__all__ = ["ExtractJob", "InProcess", "Job", "ScoreJob", "TrainJob", "WorkerPool", "outputs_of"]


@dataclass(frozen=True)
class TrainJob:
    """Train a wave. The result holds for each training, then for the sum, its outputs by name."""

    wave: Wave
    values: Sequence[TensorDict]
    """The parts that come from outside of the wave."""
    changes: Mapping[tuple[int, str], Change] = field(default_factory=dict)
    """Outputs, by their training and their name, that a worker hands over as changes."""

    @property
    def model(self) -> str:
        """The digest of its models' table."""
        return self.wave.trainings[0].about.model

    def run(self, trainer: Trainer, deliver: Deliver = as_made) -> list[dict[str, TensorDict]]:
        """Do the job with *trainer*."""
        train = trained_and_selected if selects(self.wave) else type(trainer).train
        return train(trainer, self.wave, self.values, deliver)


@dataclass(frozen=True)
class ScoreJob:
    """Score batches of samples with one model. The result holds a `Score` for each batch."""

    model: str
    """The digest of its table."""
    parts: tuple[str, ...]
    values: Sequence[TensorDict]
    """The model: a value for each of its parts."""
    batches: tuple[npt.NDArray[np.int64], ...]
    """Ids of samples."""
    clients: tuple[int | None, ...] | None = None
    """Whose they are, for each batch; None: nobody's who trains."""

    def run(self, trainer: Trainer, deliver: Deliver = as_made) -> list[Score]:
        """Do the job with *trainer*."""
        return trainer.score(dict(zip(self.parts, self.values, strict=True)), self.batches, self.clients)


@dataclass(frozen=True)
class ExtractJob:
    """Pass samples of some clients through one frozen extractor. The result holds for each client its rows."""

    parts: tuple[str, ...]
    values: Sequence[TensorDict]
    """The extractor: a value for each of its parts."""
    extractions: tuple[Extraction, ...]

    @property
    def model(self) -> str:
        """The digest of the extractor's table."""
        return self.extractions[0].about.model

    def run(self, trainer: Trainer, deliver: Deliver = as_made) -> list[dict[str, TensorDict]]:
        """Do the job with *trainer*."""
        rows = trainer.extract(dict(zip(self.parts, self.values, strict=True)), self.extractions)
        return [{SEMANTICS: some} for some in rows]


Job = TrainJob | ScoreJob | ExtractJob


def outputs_of(job: Job) -> list[tuple[str, ...]]:
    """The names of what a job makes, for each training and then for each sum."""
    if isinstance(job, ScoreJob):
        return []
    if isinstance(job, ExtractJob):
        return [(SEMANTICS,)] * len(job.extractions)
    wanted = [training.wanted for training in job.wave.trainings]
    return [*wanted, *(total.parts for total in job.wave.sums)]


class WorkerPool(ABC):
    """Does jobs, each with the same result whoever does it."""

    workers: int
    """How many jobs can be done at the same time."""

    @abstractmethod
    def begin(self, job: Job) -> Any:
        """Take a job; returns a ticket for `finish`."""

    def begin_apart(self, job: TrainJob) -> Any:
        """Take a job of a wave whose trainings gain nothing by being together; returns a ticket for `finish`."""
        return self.begin(job)

    @abstractmethod
    def finish(self, ticket: Any) -> Any:
        """The result of a job that was begun; waits for it. Raises what doing it raised."""

    def new_like(self, value: TensorDict) -> TensorDict | None:
        """Uninitialised memory for such a part, which workers can read without a copy; None when there is none."""
        return None

    def forget(self) -> None:  # noqa: B027 - here there is nothing to forget
        """Drop every job that was begun and not finished."""

    def close(self) -> None:  # noqa: B027 - here there is nothing to close
        """End the workers; they begin anew when the next job comes."""


class InProcess(WorkerPool):
    """This process does each job when its result is asked for; *hire* makes the trainer of a table's digest."""

    workers = 1

    def __init__(self, hire: Callable[[str], Trainer]) -> None:
        self._trainer_of = cache(hire)

    def begin(self, job: Job) -> Job:
        """The job is its own ticket."""
        return job

    def finish(self, ticket: Job) -> Any:
        """Do it now."""
        return ticket.run(self._trainer_of(ticket.model))
