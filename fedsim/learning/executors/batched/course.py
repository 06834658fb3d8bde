"""What a group of clients goes through: each client's mini-batches, chain by chain, step by step.

No step is listed ahead, so that long trainings take no more memory than short ones.

Those with most steps come first, so that at every step the ones that still train are the first ones. A mini-batch that
is smaller than others of the same step is filled up with rows whose gradient is exactly zero; convolutions never see
these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain as one_after_the_other
from typing import NamedTuple

import torch

from fedsim.learning.executors.batched.samples import XY
from fedsim.learning.executors.wave import Training

__all__ = ["Chain", "Course", "Draw", "MiniBatch", "Stage"]


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

    def __init__(self, draw: Draw, chains: Sequence[Chain]) -> None:
        self._draw = draw
        sizes = [[stage.training.about.sizes for stage in chain] for chain in chains]
        steps = [sum(stage.steps for stage in own) for own in sizes]
        order = sorted(range(len(chains)), key=lambda number: (-steps[number], number))
        self.chains = tuple(chains[number] for number in order)
        """In the order in which the group holds them."""
        self._sizes = [sizes[number] for number in order]
        self._steps = [steps[number] for number in order]
        self.widest = max(stage.largest for own in sizes for stage in own)
        """Samples of the largest mini-batch of all."""

    def steps(self) -> Iterator[tuple[int, int]]:
        """Of each step (how many chains have a mini-batch, how many samples the largest of them has)."""
        sizes = [one_after_the_other.from_iterable(own) for own in self._sizes]
        active = len(sizes)
        for step in range(self._steps[0]):
            while self._steps[active - 1] <= step:
                active -= 1
            yield active, max(next(own) for own in sizes[:active])

    def rows(self, most: int) -> int:
        """The widths of all steps together, or *most* if they are more: then the other steps are not looked at."""
        rows = 0
        for _, width in self.steps():
            rows += width
            if rows >= most:
                return most
        return rows

    def feeds(self) -> list[Iterator[MiniBatch]]:
        """Each chain's mini-batches."""
        return [self._feed(chain) for chain in self.chains]

    def _feed(self, chain: Chain) -> Iterator[MiniBatch]:
        for stage in chain:
            for x, y in self._draw(stage):
                yield MiniBatch(stage, x, y)
