"""One piece of work for everybody: data, model, who trains in which round on which mini-batches, and how it is scored.

The work: 100 clients with 50 samples each of 28x28 random pixels and 62 random labels, 30 clients a round, one local
epoch of plain SGD, the mean of their models scored on 1,000 test samples in every round. Left out: batches that do not
fill, as 50 is a multiple of every batch size here.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

CLIENTS, COHORT, SAMPLES, TESTS, CLASSES, RATE = 100, 30, 50, 1000, 62, 0.01
MODELS = {"A": (16, 32, (1568, 128, 62)), "B": (32, 64, (3136, 2048, 100, 62))}
"""Channels of the two 5x5 convolutions, then widths of the dense layers."""
Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Work:
    """What a peer is given: a folder with the arrays, a model's letter, a batch size, and how many rounds."""

    folder: Path
    model: str
    batch: int
    rounds: int
    cores: int

    @cached_property
    def train(self) -> Batch:
        """Pixels (clients, samples, 1, 28, 28) and labels (clients, samples)."""
        x, y = self._samples(slice(0, CLIENTS * SAMPLES))
        return x.view(CLIENTS, SAMPLES, 1, 28, 28), y.view(CLIENTS, SAMPLES)

    @cached_property
    def test(self) -> Batch:
        """Pixels (tests, 1, 28, 28) and labels (tests,)."""
        return self._samples(slice(CLIENTS * SAMPLES, None))

    @cached_property
    def cohorts(self) -> NDArray[np.int64]:
        """The clients of each round, (rounds, cohort)."""
        return self._plan["cohorts"]

    def shuffled(self, round_index: int, position: int) -> Batch:
        """All samples of the client at *position* of a round's cohort, in the order of its mini-batches."""
        x, y = self.train
        client = int(self.cohorts[round_index, position])
        order = torch.from_numpy(self._plan["orders"][round_index, position])
        return x[client, order], y[client, order]

    def batches(self, round_index: int, position: int) -> Iterator[Batch]:
        """The client's mini-batches."""
        x, y = self.shuffled(round_index, position)
        yield from zip(x.split(self.batch), y.split(self.batch), strict=True)

    def start(self) -> list[torch.Tensor]:
        """The parameters that everybody starts from, in the order of `module`'s own; new memory."""
        with np.load(self.folder / f"start_{self.model}.npz") as arrays:
            return [torch.from_numpy(arrays[str(number)]) for number in range(len(arrays.files))]

    def untrained(self) -> nn.Sequential:
        """The model, as one writes it in PyTorch, with parameters as PyTorch draws them."""
        first, second, widths = MODELS[self.model]
        layers: list[nn.Module] = []
        for inputs, outputs in ((1, first), (first, second)):
            layers += [nn.Conv2d(inputs, outputs, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        layers.append(nn.Flatten())
        for inputs, outputs in itertools.pairwise(widths):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def module(self) -> nn.Sequential:
        """The same with the parameters of the start."""
        module = self.untrained()
        with torch.no_grad():
            for parameter, value in zip(module.parameters(), self.start(), strict=True):
                parameter.copy_(value)
        return module

    @cached_property
    def _plan(self) -> dict[str, NDArray[np.int64]]:
        with np.load(self.folder / "plan.npz") as arrays:
            return dict(arrays)

    def _samples(self, rows: slice) -> Batch:
        with np.load(self.folder / "samples.npz") as arrays:
            return torch.from_numpy(arrays["x"][rows]), torch.from_numpy(arrays["y"][rows])


def test_loss(module: nn.Module, test: Batch) -> float:
    """The mean cross-entropy of the test samples."""
    module.eval()
    x, y = test
    with torch.no_grad():
        total = sum(
            float(nn.functional.cross_entropy(module(some), labels, reduction="sum"))
            for some, labels in zip(x.split(250), y.split(250), strict=True)
        )
    module.train()
    return total / len(y)


def flops_per_round(model: str) -> float:
    """Forward, gradients of weights and of inputs for each training sample, forward for each test sample.

    The first convolution has no gradient of its input. A multiplication and an addition are two.

    >>> [round(flops_per_round(model) / 1e9, 1) for model in MODELS]
    [32.4, 188.4]
    """
    first, second, widths = MODELS[model]
    conv1, conv2 = 2 * 28 * 28 * first * 25, 2 * 14 * 14 * second * first * 25
    forward = conv1 + conv2 + 2 * sum(a * b for a, b in itertools.pairwise(widths))
    return float(COHORT * SAMPLES * (3 * forward - conv1) + TESTS * forward)


class Record:
    """When each round ended (on the clock that all processes share), its test loss, and the model after the first."""

    def __init__(self) -> None:
        self.ends_s: list[float] = []
        self.losses: list[float] = []
        self.versions: dict[str, str] = {}
        self._first: NDArray[np.float32] | None = None

    def round_done(self, loss: float, parameters: Iterable[torch.Tensor]) -> None:
        """A round has ended, its evaluation included. *parameters*: the mean model's, in the order of `Work.start`."""
        if not self.losses:  # the first round is a warm-up, so it may take longer
            self.keep(parameters)
        self.ends_s.append(time.monotonic())
        self.losses.append(loss)

    def keep(self, parameters: Iterable[torch.Tensor]) -> None:
        """Keep the model after the first round."""
        values = [value.detach().reshape(-1) for value in parameters]
        self._first = torch.cat(values).numpy() if values else None

    def save(self, folder: Path) -> None:
        """``record.json``, and ``first.npy`` if there is a model."""
        if self._first is not None:
            np.save(folder / "first.npy", self._first)
        public = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        (folder / "record.json").write_text(json.dumps(public))
