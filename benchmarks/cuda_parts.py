"""Parts of training on a CUDA device: waves of several sizes, recordings, and the steps of the plain loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.utils.deterministic

import fedsim
from benchmarks.cuda_rounds import OF_IMAGES, RESIDUAL
from benchmarks.cuda_work import SEED, Asked, random_clients, seconds, start_of, wave_of
from benchmarks.models_work import MODELS, Work
from benchmarks.peers.work import CLASSES, CLIENTS, COHORT, RATE, SAMPLES, TESTS, Record
from benchmarks.training_fedsim import Watch
from benchmarks.training_work import table, write_scenario
from fedsim.learning.executors import plain
from fedsim.learning.executors.batched.recordings import Recordings
from fedsim.learning.executors.batched.samples import XY, ResidentSamples
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.executors.wave import Training
from fedsim.learning.training import TrainingSettings
from fedsim.scenario.schema import Scenario

PIXELS = (1, 28, 28)
OF_A_WAVE = (8, 16, 32)
ONCE_ALL_ARE_KNOWN = 3
"""Waves of a kind until a recording of it has been played."""
STEPS = 16
"""Of the plain loop."""


# -- waves ---------------------------------------------------------------------------------------------------------


def waves(asked: Asked) -> Iterator[str]:
    """A line for each model, way and size of a wave: what a client costs."""
    for model in "AB":
        layers, dataset = table(model), random_clients(PIXELS, CLASSES, [SAMPLES] * max(OF_A_WAVE))
        trainer = BatchedTrainer(layers, dataset, asked.torch_device, "float32")
        start, training = (
            start_of(layers, asked.torch_device),
            TrainingSettings(learning_rate=RATE, batch_size=asked.batch),
        )
        played = trainer._recordings
        for way, recordings in {"one operation after the other": None, "as CUDA graphs": played}.items():
            trainer._recordings = recordings
            costs = []
            for clients in OF_A_WAVE:
                train = partial(trainer.train, wave_of(layers, dataset, clients, training), start)
                seconds(train, asked.torch_device, ONCE_ALL_ARE_KNOWN)
                costs.append(f"{clients}: {1e3 * seconds(train, asked.torch_device, asked.rounds) / clients:7.2f}")
            yield f"model {model}, {way:<29} ms a client in waves of {', '.join(costs)}"


# -- recordings ----------------------------------------------------------------------------------------------------


@dataclass
class Count:
    """Groups of clients that were trained, and how many of them were played."""

    groups: int = 0
    played: int = 0


@contextmanager
def counted() -> Iterator[Count]:
    """Within, groups are counted."""
    own, count = Recordings.trained, Count()

    def trained(recordings: Recordings, *given: Any) -> Any:
        made = own(recordings, *given)
        count.groups += 1
        count.played += made is not None
        return made

    with mock.patch.object(Recordings, "trained", trained):
        yield count


def recordings(asked: Asked) -> Iterator[str]:
    """A line for each way in which clients may have samples, and take part: how many groups are played."""
    equal = [SAMPLES] * CLIENTS
    shares = np.random.default_rng(SEED).dirichlet(np.full(CLIENTS, 2.0))
    unequal = np.maximum(1, np.round(CLIENTS * SAMPLES * shares)).astype(int).tolist()
    cases = {
        f"equal sizes, {COHORT} of {CLIENTS} clients a round": (equal, COHORT),
        f"sizes of Dirichlet(2), {COHORT} of {CLIENTS} clients a round": (unequal, COHORT),
        f"sizes of Dirichlet(2), the same {COHORT} clients in each round": (unequal[:COHORT], COHORT),
    }
    for case, (sizes, cohort) in cases.items():
        record, scenario = Record(), scenario_with(asked, sizes, cohort)
        here: dict[str, Any] = {"executor": "batched", "torch_device": asked.torch_device, "workers": 1}
        with counted() as count:
            fedsim.run(scenario, out=asked.folder / f"run of {case}", observer=Watch(record), **here)
        later_s = np.median(np.diff(record.ends_s)[asked.rounds // 2 :])
        yield (
            f"model A, {case:<65} {count.played} of {count.groups} groups played in {len(record.ends_s)} rounds, "
            f"{later_s:.3f} s a round later on"
        )


def scenario_with(asked: Asked, sizes: Sequence[int], cohort: int) -> Scenario:
    """Model A with clients of such *sizes*, of which a *cohort* trains in each round."""
    path, rng, total = asked.folder / f"sizes_{len(sizes)}_{sizes[0]}.npz", np.random.default_rng(SEED), sum(sizes)
    np.savez(
        path,
        x=rng.random((total + TESTS, *PIXELS), dtype=np.float32),
        y=rng.integers(0, CLASSES, total + TESTS),
        client=np.concatenate([np.repeat(np.arange(len(sizes)), sizes), np.arange(TESTS) % len(sizes)]),
        test=np.arange(total + TESTS) >= total,
    )
    return fedsim.load(
        write_scenario(asked.folder, "A", asked.batch, 2 + asked.rounds),
        overrides=[f"data.path={path}", f"topology.devices={len(sizes)}", f"protocols.0.clients={cohort}"],
    )


# -- the plain loop ------------------------------------------------------------------------------------------------


class Resident(PlainTrainer):
    """Its samples lie on the device, where others are copied mini-batch by mini-batch."""

    def _mini_batches(self, training: Training, rows: Sequence[TensorDict]) -> Iterator[XY]:
        about = training.about
        return self._resident.mini_batches(about.seen, about.training, training.stream)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._resident = ResidentSamples(self.dataset, self.dtype, self.torch_device)


@contextmanager
def memory_filled(torch_device: str) -> Iterator[None]:
    """As `repeatable`, but new memory is filled."""
    with own_repeatable(torch_device):
        memory: Any = torch.utils.deterministic
        memory.fill_uninitialized_memory = True
        yield


own_repeatable, own_sgd = plain.repeatable, plain.sgd


def weight_by_weight(*given: Any, foreach: bool, **options: Any) -> None:
    """`sgd` without operations for all weights."""
    own_sgd(*given, foreach=False, **options)


CHOICES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "as it is": nullcontext,
    "a step for each weight": lambda: mock.patch.object(plain, "sgd", weight_by_weight),
    "new memory is filled": lambda: mock.patch.object(plain, "repeatable", memory_filled),
    "any algorithms": lambda: mock.patch.object(plain, "repeatable", lambda _: nullcontext()),
    "samples are on the device": nullcontext,
}


def plain_loop(asked: Asked) -> Iterator[str]:
    """A line for each choice: milliseconds of a step, and whether the model is the same to the last bit."""
    work = Work(next(model for model in MODELS if model.label == RESIDUAL), OF_IMAGES)
    layers, dataset = work.table(), random_clients(work.model.shape, work.model.classes, [STEPS * OF_IMAGES])
    training = TrainingSettings(learning_rate=work.model.rate, batch_size=OF_IMAGES, momentum=0.9)
    wave, start = wave_of(layers, dataset, 1, training), start_of(layers, asked.torch_device)
    expected: list[torch.Tensor] = []
    for choice, within in CHOICES.items():
        kind = Resident if choice == "samples are on the device" else PlainTrainer
        train = partial(kind(layers, dataset, asked.torch_device, "float32").train, wave, start)
        with within():
            made = [tensor for part in train()[-1].values() for tensor in part.values()]
            taken = seconds(train, asked.torch_device, asked.rounds)
        expected = expected or made
        same = all(torch.equal(one, other) for one, other in zip(made, expected, strict=True))
        bits = "the same bits" if same else "other bits"
        yield f"{RESIDUAL}, momentum, {choice:<26} {1e3 * taken / STEPS:7.2f} ms a step, {bits}"
