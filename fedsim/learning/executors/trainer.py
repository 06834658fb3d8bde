"""What trains: the arithmetic of local training and of scoring, the same in this process and in workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors.wave import Wave
from fedsim.models.table import ModelTable

__all__ = ["Part", "Score", "Tally", "Trainer", "number_type", "scores_from"]

Part = dict[str, torch.Tensor]
Tally = tuple[torch.Tensor, torch.Tensor]
"""A `Score` that may still be on its way: the loss and the number of correct answers."""


class Score(NamedTuple):
    """What a batch of samples yields: its loss, summed, and how many it got right (0 for regression)."""

    loss: float
    correct: int


def scores_from(tallies: Sequence[Tally]) -> list[Score]:
    """Read tallies, all in one transfer from their device: floating-point numbers of any type are told exactly."""
    if not tallies:
        return []
    numbers = torch.stack([torch.stack((loss.double(), correct.double())) for loss, correct in tallies]).tolist()
    return [Score(loss, int(correct)) for loss, correct in numbers]


def number_type(precision: str) -> torch.dtype:
    """The type of the numbers that a model is kept in."""
    return torch.float64 if precision == "float64" else torch.float32


class Trainer(ABC):
    """Trains waves of clients and scores samples with one model; its numbers depend on nothing but what it is given."""

    precisions: ClassVar[tuple[str, ...]] = ("float32", "float64")
    """The first one is the default."""

    @abstractmethod
    def __init__(self, table: ModelTable, dataset: FederatedDataset, torch_device: str, precision: str) -> None:
        """Get ready to train the model of *table* on *dataset*."""

    @classmethod  # noqa: B027
    def prepare(cls, table: ModelTable, torch_device: str, precision: str) -> None:
        """Make what trainers of that model have in common: once, before processes are forked that have one each."""

    @abstractmethod
    def train(self, wave: Wave, values: Sequence[Part]) -> list[dict[str, Part]]:
        """For each training of *wave* the outputs that are wanted, then the outputs of its sum, in new memory.

        Outputs are the model's parts, and ``state.NAME`` for what a client remembers. *values* are what the wave's
        inputs point at; they are not changed.
        """

    @abstractmethod
    def score(self, model: Mapping[str, Part], batches: Sequence[npt.NDArray[np.int64]]) -> list[Score]:
        """Loss and correct answers of each batch of sample ids."""
