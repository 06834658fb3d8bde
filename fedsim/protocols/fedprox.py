"""FedProx (Li et al., *Federated optimization in heterogeneous networks*, MLSys 2020, algorithm 2).

Leaves out the inexactness parameter gamma: every client does the same number of epochs, as in the paper's experiments
without stragglers.
"""

from __future__ import annotations

from typing import Literal

from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.proximal import Proximal
from fedsim.protocols.averaging import Averaging
from fedsim.settings import NonNegative

__all__ = ["FedProx"]


class FedProx(Averaging):
    """FedAvg with a proximal term that keeps each client's model near the one it received."""

    name: Literal["fedprox"] = "fedprox"
    mu: NonNegative
    """Strength of the proximal term ``(mu / 2) ||w - w_received||^2``; 0 is FedAvg."""

    def local_objective(self) -> Objective:
        """Loss plus proximal term."""
        return Proximal(mu=self.mu)
