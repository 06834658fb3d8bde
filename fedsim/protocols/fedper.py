"""FedPer (Arivazhagan, Aggarwal, Singh and Choudhary, *Federated learning with personalization layers*,
arXiv:1912.00818, 2019, algorithms 1 and 2).

The paper's base layers are the part *extractor*, and its personalisation layers, the last ones of the model, are the
part *classifier*: where the two meet is said by the model, and by no key of this protocol.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.averaging import ParallelTraining
from fedsim.protocols.exchanges.extractor import Extractor
from fedsim.settings import OneOf

__all__ = ["FedPer"]


class FedPer(ParallelTraining):
    """FedAvg of the extractor alone: each client keeps a classifier of its own, which nobody else gets."""

    name: Literal["fedper"] = "fedper"
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples."""

    def exchanged(self) -> Extractor:
        """The extractor."""
        return Extractor()

    def local_objective(self) -> Objective:
        """As the scenario names it."""
        return self.objective
