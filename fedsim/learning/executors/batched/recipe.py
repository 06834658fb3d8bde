"""How weights change in a step: the options of SGD, and the objective's own term where it is linear in the weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from fedsim.learning.objectives.objective import Objective
from fedsim.learning.operations.train import Train

__all__ = ["Recipe"]


@dataclass(frozen=True)
class Recipe:
    """One step is ``b = momentum b + g + push + weight_decay w + pull (w - start)``, then ``w = w - learning_rate b``.

    That is `torch.optim.SGD` on the gradient of the loss, ``g``, and of ``(pull / 2) ||w - start||^2 + push w``.
    """

    learning_rate: float
    momentum: float
    weight_decay: float
    objective: Objective
    products: torch.dtype | None = None
    """The type in which the factors of large products are rounded; None: they are taken as they are."""

    @classmethod
    def of(cls, about: Train, products: torch.dtype | None = None) -> Recipe:
        """The recipe of a training."""
        options = about.training
        return cls(options.learning_rate, options.momentum, options.weight_decay, about.objective, products)

    @property
    def pull(self) -> float:
        """How strongly weights are pulled to where they started."""
        return self.objective.pull or 0.0

    @property
    def linear(self) -> bool:
        """Whether a step is linear in weights, start, gradient and push: then the change can be kept in factors."""
        return self.objective.pull is not None

    @property
    def pushes(self) -> bool:
        """Whether a step adds a constant of each client's training."""
        return self.linear and self.objective.pushes

    @property
    def plain(self) -> bool:
        """Whether a step is ``w - learning_rate g`` and nothing else."""
        return self.linear and not (self.momentum or self.weight_decay or self.pull or self.pushes)

    @property
    def rescales(self) -> bool:
        """Whether a step multiplies the base, the weights that all clients share, by a number that is not 1.

        A pull to the start of a training does not: the start contains the base once, and so do the weights.
        """
        return bool(self.weight_decay)

    @property
    def keeps_start(self) -> bool:
        """Whether a copy of the weights at the training's beginning is needed."""
        return self.objective.reads_start
