"""SCAFFOLD (Karimireddy et al., *SCAFFOLD: stochastic controlled averaging for federated learning*, ICML 2020,
algorithm 1, option II).

Leaves out option I, whose control variate is a gradient at the received model, which costs one more pass.
"""

from __future__ import annotations

from typing import Literal

from fedsim.learning.objectives.control_variates import ControlVariates
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.scaffold import ControlledMean
from fedsim.protocols.averaging import Averaging

__all__ = ["Scaffold"]


class Scaffold(Averaging):
    """FedAvg with control variates, which correct each client's gradients for what its own samples make of them."""

    name: Literal["scaffold"] = "scaffold"
    server: ControlledMean = ControlledMean()
    """The server's step and its control variate, by their keys."""
    weighting: Literal["samples", "uniform"] = "uniform"
    """Weights of the updates: all equal (the paper), or by training samples."""

    def local_objective(self) -> Objective:
        """The loss, with corrected gradients."""
        return ControlVariates()
