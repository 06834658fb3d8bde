"""FedProx's term (Li et al., *Federated optimization in heterogeneous networks*, MLSys 2020, Eq. 2)."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.learning.objectives.objective import Given, Objective, Tensors
from fedsim.settings import NonNegative

__all__ = ["Proximal"]


class Proximal(Objective):
    """``(mu / 2) ||w - w_start||^2`` over all parameters: a client's model is kept near the one that it received."""

    name: Literal["proximal"] = "proximal"
    reads_start: ClassVar[bool] = True
    mu: NonNegative
    """Strength of the term; 0: local SGD."""

    @property
    def pull(self) -> float:
        """``mu``."""
        return self.mu

    def add_gradient(self, gradients: Tensors, weights: Tensors, given: Given) -> None:
        """Adds ``mu (w - w_start)``."""
        for name, gradient in gradients.items():
            gradient.add_(weights[name] - given.start[name], alpha=self.mu)
