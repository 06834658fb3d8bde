"""Federated averaging (McMahan et al., *Communication-efficient learning of deep networks from decentralized data*,
AISTATS 2017, algorithm 1).

Leaves out nothing of the algorithm; deadlines and over-selection follow Bonawitz et al. (MLSys 2019).
"""

from __future__ import annotations

from typing import Annotated, Literal

from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.averaging import Averaging
from fedsim.settings import OneOf

__all__ = ["FedAvg"]


class FedAvg(Averaging):
    """Federated averaging: a random cohort trains by SGD in parallel, and the cloud averages its models."""

    name: Literal["fedavg"] = "fedavg"
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples."""

    def local_objective(self) -> Objective:
        """As the scenario names it."""
        return self.objective
