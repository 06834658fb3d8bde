"""Workers whose trainer does as it is told, jobs for them, and the processes that they are."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from small_learner import table

from fedsim.errors import Misfit
from fedsim.kernel.streams import Stream
from fedsim.learning.batches import BatchSizes
from fedsim.learning.executors.trainer import Deliver, Score, TensorDict, Trainer, as_made
from fedsim.learning.executors.wave import Made, Training, Wave
from fedsim.learning.executors.worker_pool import TrainJob, WorkerPool
from fedsim.learning.executors.workers import Workers
from fedsim.learning.operations.operation import Slot


@dataclass(frozen=True)
class Told:
    """What a training asks for, in place of its operation."""

    do: Sequence[str] = ()
    plus: int = 1
    model: str = table().digest
    samples: int = 1

    @property
    def sizes(self) -> BatchSizes:
        """It takes as long as one epoch of that many samples."""
        return BatchSizes(self.samples, self.samples, 1)


class NotSent(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("a", "b")


def told_of(training: Training) -> Told:
    return training.about  # type: ignore[return-value]


class Obedient(Trainer):
    """Does what a training's parameters say; its model is the one it was given, plus a number."""

    def __init__(self, _: str = "") -> None:
        """It needs neither table nor data."""

    def train(
        self, wave: Wave, values: Sequence[TensorDict], deliver: Deliver = as_made
    ) -> list[dict[str, TensorDict]]:
        outputs: list[dict[str, TensorDict]] = []
        for training in wave.trainings:
            for what in told_of(training).do:
                getattr(self, what)()
            made: dict[str, TensorDict] = {}
            for name in training.wanted:
                source = training.inputs[
                    Slot(*(("state", 0, name[6:]) if name.startswith("state.") else ("model", 0, name)))
                ]
                given = outputs[source.training][source.output] if isinstance(source, Made) else values[source]
                made[name] = {key: tensor + told_of(training).plus for key, tensor in given.items()}
            outputs.append({name: deliver(len(outputs), name, value) for name, value in made.items()})
        for total in wave.sums:
            outputs.append({part: dict(values[at]) for part, at in total.base.items()})
        return outputs

    def features(self, *_: Any) -> list[torch.Tensor]:
        raise AssertionError("no job of these tests asks for features")

    def score(self, model: Mapping[str, TensorDict], batches: Sequence[np.ndarray], clients: object) -> list[Score]:
        loss = float(sum(part["fc.bias"].sum() for part in model.values()))
        return [Score(loss, len(ids), ids.astype(np.int32)) for ids in batches]

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self) -> None:
        os._exit(3)

    def sleep(self) -> None:
        time.sleep(60)

    def doze(self) -> None:
        time.sleep(0.05)

    def misfit(self) -> None:
        raise Misfit("rate=3 must be less", "training", 2, "rate")

    def divide(self) -> None:
        assert 1 / 0

    def miss_threads(self) -> None:
        raise RuntimeError("Unable to handle autograd's threading in combination with fork-based multiprocessing.")

    def say(self) -> None:
        sys.stdout.write("said by a worker\n")

    def not_sent(self) -> None:
        raise NotSent


def pool_of(workers: int, hire: Callable[[str], Trainer] = Obedient) -> Workers:
    return Workers(hire, workers, [table()], torch.float32)


def part(number: float = 0.0) -> TensorDict:
    return {name: torch.full(shape, float(number)) for name, shape in table().state_shapes("classifier").items()}


CLASSIFIER = Slot("model", part="classifier")


def told(stream: Stream, inputs: Mapping[Slot, Any], wanted: tuple[str, ...], **what: Any) -> Training:
    """A training that asks for that."""
    return Training(Told(**what), stream, inputs, wanted)  # type: ignore[arg-type]


def job(
    *values: TensorDict,
    do: Sequence[str] = (),
    wanted: tuple[str, ...] = ("classifier",),
    inputs: Mapping[Slot, int] | None = None,
) -> TrainJob:
    """One training for each value."""
    trainings = [
        told(Stream(1, "batches"), {CLASSIFIER: at} | dict(inputs or {}), wanted, do=do) for at in range(len(values))
    ]
    return TrainJob(Wave(tuple(trainings)), values)


def done(pool: WorkerPool, *jobs: TrainJob) -> list[list[dict[str, TensorDict]]]:
    return [pool.finish(ticket) for ticket in [pool.begin(job) for job in jobs]]


def is_all(value: TensorDict, number: float) -> bool:
    return value.keys() == part().keys() and all((tensor == number).all() for tensor in value.values())


def free(pool: Workers) -> int:
    return pool._shared.free(f"{table().digest}/classifier")


def children() -> set[int]:
    """Processes that this one has started and not waited for."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            _, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.add(int(folder.name))
    return found
