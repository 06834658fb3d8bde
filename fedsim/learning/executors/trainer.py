"""What trains: the arithmetic of local training and of scoring, the same in this process and in workers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Streams
from fedsim.learning.batches import samples_seen
from fedsim.learning.executors.semantics import rows_of
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.executors.wave import Extraction, Wave
from fedsim.learning.operations.extract import LABELS, SAMPLES
from fedsim.models.table import ModelTable

__all__ = [
    "Deliver",
    "Score",
    "Tally",
    "TensorDict",
    "Trainer",
    "as_made",
    "infinite_unless_finite",
    "number_type",
    "scores_from",
]

Tally = tuple[torch.Tensor, torch.Tensor]
"""What of a `Score` may still be on its way: the loss, and (samples,) the predicted classes or values."""

Deliver = Callable[[int, str, TensorDict], TensorDict]
"""Takes an output, by its training and its name, that nothing will change any more; returns it where it lies then."""


def as_made(training: int, name: str, value: TensorDict) -> TensorDict:
    """Leaves it where it was made."""
    return value


class Score(NamedTuple):
    """What a batch of samples yields: its loss, summed, how many it got right (0 for regression), and what it predicts.

    Where a score of the model is not finite, neither is the loss.
    """

    loss: float
    correct: int
    predicted: npt.NDArray[Any]
    """(samples,) int32 classes, or float64 values."""


def infinite_unless_finite(loss: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    """*loss*, or infinity where one of *scores* is not finite; nothing waits for the device.

    The loss alone does not tell: an infinite score against a class takes nothing from a right answer.
    """
    return torch.where(scores.isfinite().all(), loss, math.inf)


def scores_from(tallies: Sequence[Tally], y: Sequence[npt.NDArray[Any]]) -> list[Score]:
    """Read tallies of batches whose labels, or values, are *y*, all in one transfer from their device.

    They come as float64, in which classes and floating-point numbers of any type are told exactly.
    """
    if not tallies:
        return []
    numbers = torch.cat([part.double().reshape(-1) for tally in tallies for part in tally]).cpu().numpy()
    scores, begin = [], 0
    for right in y:
        loss, predicted = float(numbers[begin]), numbers[begin + 1 : begin + 1 + len(right)]
        begin += 1 + len(right)
        if right.dtype.kind == "f":
            scores.append(Score(loss, 0, predicted))
        else:
            scores.append(Score(loss, int(np.count_nonzero(predicted == right)), predicted.astype(np.int32)))
    return scores


def number_type(precision: str) -> torch.dtype:
    """The type of the numbers that a model is kept in."""
    return torch.float64 if precision == "float64" else torch.float32


class Trainer(ABC):
    """Trains waves of clients and scores samples with one model; its numbers depend on nothing but what it is given."""

    table: ModelTable
    """Of its model."""
    dataset: FederatedDataset
    torch_device: str
    dtype: torch.dtype
    """Of samples and models."""
    precisions: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The first one is the default."""
    together: ClassVar[bool] = False
    """Whether the trainings of a wave go through their steps side by side, as a rule."""

    @abstractmethod
    def __init__(self, table: ModelTable, dataset: FederatedDataset, torch_device: str, precision: str) -> None:
        """Get ready to train the model of *table* on *dataset*."""

    def tensor(self, values: npt.NDArray[Any]) -> torch.Tensor:
        """On the trainer's device: floating-point numbers in its precision, whole ones as they are."""
        tensor = torch.from_numpy(np.ascontiguousarray(values)).to(self.torch_device)
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor

    def labels(self, batches: Sequence[npt.NDArray[np.int64]]) -> list[npt.NDArray[Any]]:
        """The labels, or values, of each batch of sample ids, as the data set has them."""
        assert self.dataset.y is not None
        return [self.dataset.y[ids] for ids in batches]

    @classmethod  # noqa: B027
    def prepare(cls, table: ModelTable, torch_device: str, precision: str) -> None:
        """Make what trainers of that model have in common: once, before processes are forked that have one each."""

    @classmethod
    def side_by_side(cls, wave: Wave) -> bool:
        """Whether the trainings of *wave* go through their steps side by side."""
        return cls.together

    @abstractmethod
    def train(
        self, wave: Wave, values: Sequence[TensorDict], deliver: Deliver = as_made
    ) -> list[dict[str, TensorDict]]:
        """For each training of *wave* the outputs that are wanted, then the outputs of its sum, in new memory.

        Outputs are the model's parts, and ``state.NAME`` for what a client remembers. *values* are what the wave's
        inputs point at; they are not changed. A trainer may *deliver* what is wanted of a training when that is done,
        and need not keep it until all are.
        """

    def extract(self, extractor: Mapping[str, TensorDict], extractions: Sequence[Extraction]) -> list[TensorDict]:
        """Rows of semantics for each extraction, in new memory: what *extractor*, frozen, makes of its samples."""
        with torch.no_grad():
            given = [self._given(extraction) for extraction in extractions]
            features = self.features(extractor, [x for x, _ in given])
        return [
            rows_of(made, xy[1], xy[0] if extraction.about.with_samples else None)
            for made, xy, extraction in zip(features, given, extractions, strict=True)
        ]

    def _given(self, extraction: Extraction) -> tuple[torch.Tensor, torch.Tensor]:
        """Samples and labels."""
        if extraction.remembered is not None:
            return extraction.remembered[SAMPLES], extraction.remembered[LABELS]
        x, y = samples_seen(self.dataset, extraction.about.seen, Streams(extraction.stream.seed))
        return self.tensor(x), self.tensor(y)

    @abstractmethod
    def features(self, extractor: Mapping[str, TensorDict], samples: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """(samples, features) of each batch of samples."""

    @abstractmethod
    def score(
        self,
        model: Mapping[str, TensorDict],
        batches: Sequence[npt.NDArray[np.int64]],
        clients: Sequence[int | None] | None = None,
    ) -> list[Score]:
        """Loss and predictions of each batch of sample ids, of *clients* for models that treat them differently."""
