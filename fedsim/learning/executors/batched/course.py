"""What a group of clients goes through: each client's mini-batches, chain by chain, step by step.

Those with most steps come first, so that at every step the ones that still train are the first ones. A mini-batch that
is smaller than others of the same step is filled up with rows whose gradient is exactly zero; convolutions never see
these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.batches import batch_sizes
from fedsim.learning.executors.batched.samples import XY
from fedsim.learning.executors.wave import Training

__all__ = ["Chain", "Course", "Draw", "MiniBatch", "Stage", "sizes_of"]


@dataclass(frozen=True, eq=False)
class Stage:
    """One training of a chain."""

    number: int
    """Which one of the wave it is."""
    training: Training
    restarts: frozenset[str]
    """Parts of the model that it does not take from the training before, but from where the chain began."""
    needed: frozenset[str]
    """Outputs that somebody asks for, outside of the wave or inside."""


Chain = tuple[Stage, ...]
"""Trainings of which each goes on with the model of the one before."""

Draw = Callable[[Stage], Iterator[XY]]
"""Gives a training's mini-batches."""


class MiniBatch(NamedTuple):
    """One client's share of a step."""

    stage: Stage
    x: torch.Tensor
    y: torch.Tensor


class Course:
    """The steps of a group of chains."""

    def __init__(self, dataset: FederatedDataset, draw: Draw, chains: Sequence[Chain]) -> None:
        self._draw = draw
        sizes = [[size for stage in chain for size in sizes_of(dataset, stage)] for chain in chains]
        order = sorted(range(len(chains)), key=lambda number: (-len(sizes[number]), number))
        self.chains = tuple(chains[number] for number in order)
        """In the order in which the group holds them."""
        self._sizes = [sizes[number] for number in order]
        self.widths = [
            max(own[step] for own in self._sizes if step < len(own)) for step in range(max(map(len, self._sizes)))
        ]
        """At each step the number of samples of the largest mini-batch."""

    def active(self, step: int) -> int:
        """How many chains have a mini-batch at *step*."""
        return sum(step < len(own) for own in self._sizes)

    def feeds(self) -> list[Iterator[MiniBatch]]:
        """Each chain's mini-batches."""
        return [self._feed(chain) for chain in self.chains]

    def _feed(self, chain: Chain) -> Iterator[MiniBatch]:
        for stage in chain:
            for x, y in self._draw(stage):
                yield MiniBatch(stage, x, y)


def sizes_of(dataset: FederatedDataset, stage: Stage) -> list[int]:
    """How many samples are in each mini-batch of a training."""
    return batch_sizes(dataset, stage.training.parameters)
