"""FedMMD (Yao, Huang and Sun, *Two-stream federated learning: Reduce the communication costs*, VCIP 2018).

Leaves out the paper's second constraint, a squared distance in place of the discrepancy.
"""

from __future__ import annotations

from typing import Literal

from fedsim.learning.objectives.mmd import Mmd
from fedsim.learning.objectives.objective import Objective
from fedsim.protocols.averaging import Averaging
from fedsim.settings import NonNegative

__all__ = ["FedMMD"]


class FedMMD(Averaging):
    """FedAvg with a term that keeps the features of each client's model near those of the global model."""

    name: Literal["fedmmd"] = "fedmmd"
    coefficient: NonNegative = 0.1
    """lambda, the strength of the term; 0 is FedAvg."""
    floor: NonNegative = 0.0
    """MMD^2 counts as at least this, and has no gradient below it; 1e-4 in the authors' public code."""

    def local_objective(self) -> Objective:
        """Loss plus discrepancy of features."""
        return Mmd(coefficient=self.coefficient, floor=self.floor)
