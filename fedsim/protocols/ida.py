"""Inverse distance aggregation (Yeganeh et al., *Inverse distance aggregation for federated learning with non-IID
data*, DCL workshop at MICCAI 2020), alone, with inverse training accuracies (INTRAC), and with FedAvg's weights.
"""

from __future__ import annotations

from typing import Literal

from fedsim.learning.objectives.accuracy import TellsAccuracy
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.inverse_distance import InverseDistance
from fedsim.protocols.averaging import Averaging, FreeAveraging

__all__ = ["IDA", "IDAWithFedAvg", "IDAWithINTRAC"]


class InverseDistanceAndAccuracy(InverseDistance):
    """The rule with INTRAC, whatever other keys it has."""

    accuracy: Literal[True] = True
    """INTRAC is part of it."""


class IDA(FreeAveraging):
    """FedAvg whose server gives less weight to models that lie far from the mean."""

    name: Literal["ida"] = "ida"
    server: InverseDistance = InverseDistance()
    """Inverse distances, by their keys."""
    weighting: Literal["samples", "uniform"] = "uniform"
    """Weights of the updates beside their distances: all equal, or by training samples (``ida_fedavg``)."""


class IDAWithFedAvg(FreeAveraging):
    """IDA, whose weights are multiplied by the numbers of training samples."""

    name: Literal["ida_fedavg"] = "ida_fedavg"
    server: InverseDistance = InverseDistance()
    """Inverse distances, by their keys."""


class IDAWithINTRAC(Averaging):
    """IDA, whose weights are divided by the accuracies in training."""

    name: Literal["ida_intrac"] = "ida_intrac"
    server: InverseDistanceAndAccuracy = InverseDistanceAndAccuracy()
    """Inverse distances and accuracies, by their keys."""
    weighting: Literal["samples", "uniform"] = "uniform"
    """Weights of the updates beside these: all equal, or by training samples."""

    def local_objective(self) -> Objective:
        """The loss; a client tells its accuracy."""
        return TellsAccuracy()
