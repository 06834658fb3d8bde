"""Federated averaging (McMahan et al., *Communication-efficient learning of deep networks from decentralized data*,
AISTATS 2017, algorithm 1).

Leaves out nothing of the algorithm; deadlines and over-selection follow Bonawitz et al. (MLSys 2019).
"""

from __future__ import annotations

from typing import Literal

from fedsim.protocols.averaging import FreeAveraging

__all__ = ["FedAvg"]


class FedAvg(FreeAveraging):
    """Federated averaging: a random cohort trains by SGD in parallel, and the cloud averages its models."""

    name: Literal["fedavg"] = "fedavg"
