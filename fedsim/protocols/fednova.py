"""FedNova (Wang et al., *Tackling the objective inconsistency problem in heterogeneous federated optimization*, NeurIPS
2020): FedAvg whose server counts a client by its samples alone, however many steps it has taken.

Leaves out the paper's momentum on the server; ``server: {name: momentum}`` has that without normalisation.
"""

from __future__ import annotations

from typing import Literal

from fedsim.learning.rules.fednova import NormalisedMean
from fedsim.protocols.averaging import FreeAveraging

__all__ = ["FedNova"]


class FedNova(FreeAveraging):
    """FedAvg with normalised averaging: clients that take more steps of SGD count no more than others."""

    name: Literal["fednova"] = "fednova"
    server: NormalisedMean = NormalisedMean()
    """Normalised averaging, by its keys."""
