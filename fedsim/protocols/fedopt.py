"""FedOpt (Reddi et al., *Adaptive federated optimization*, ICLR 2021, algorithms 1 and 2), and FedAvgM (Hsu, Qi and
Brown, arXiv:1909.06335): FedAvg whose server steps by an optimiser of its own.

Only the server rule is another one, so that any protocol may have it: ``server: {name: adam}``.
"""

from __future__ import annotations

from typing import Literal

from fedsim.learning.rules.adaptive import Adagrad, Adam, Yogi
from fedsim.learning.rules.momentum import Momentum
from fedsim.protocols.averaging import FreeAveraging

__all__ = ["FedAdagrad", "FedAdam", "FedAvgM", "FedYogi"]


class FedAvgM(FreeAveraging):
    """FedAvg with momentum on the server."""

    name: Literal["fedavgm"] = "fedavgm"
    server: Momentum = Momentum()
    """Momentum, by its keys."""


class FedAdagrad(FreeAveraging):
    """FedAvg with Adagrad on the server."""

    name: Literal["fedadagrad"] = "fedadagrad"
    server: Adagrad = Adagrad()
    """Adagrad, by its keys."""


class FedAdam(FreeAveraging):
    """FedAvg with Adam on the server."""

    name: Literal["fedadam"] = "fedadam"
    server: Adam = Adam()
    """Adam, by its keys."""


class FedYogi(FreeAveraging):
    """FedAvg with Yogi on the server."""

    name: Literal["fedyogi"] = "fedyogi"
    server: Yogi = Yogi()
    """Yogi, by its keys."""
