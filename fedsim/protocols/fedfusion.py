"""FedFusion (Yao, Huang, Wu, Zhang and Sun, *Towards faster and better federated learning: A feature fusion approach*,
ICIP 2019), with each of the paper's three operators.

Leaves out the authors' learning rates, which fall from round to round.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from fedsim.learning.objectives.fusion import FeatureFusion
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.gate_average import GateAverage
from fedsim.learning.rules.rule import ServerRule
from fedsim.models.layers import Operator
from fedsim.protocols.averaging import Averaging
from fedsim.settings import OneOf

__all__ = ["FedFusionConv", "FedFusionMulti", "FedFusionSingle"]


class _FedFusion(Averaging):
    operator: ClassVar[Operator]

    def local_objective(self) -> Objective:
        """The loss, of a model with a fusion layer."""
        return FeatureFusion(operator=self.operator)


class FedFusionConv(_FedFusion):
    """FedAvg of models that fuse local and global features by a 1x1 convolution of both."""

    operator = "conv"
    name: Literal["fedfusion_conv"] = "fedfusion_conv"


class FedFusionMulti(_FedFusion):
    """FedAvg of models that fuse local and global features by a gate for each channel."""

    operator = "multi"
    name: Literal["fedfusion_multi"] = "fedfusion_multi"
    server: Annotated[ServerRule, OneOf("rules")] = GateAverage()
    """How updates become the next model; the gates move slowly."""


class FedFusionSingle(_FedFusion):
    """FedAvg of models that fuse local and global features by one gate for all channels."""

    operator = "single"
    name: Literal["fedfusion_single"] = "fedfusion_single"
    server: Annotated[ServerRule, OneOf("rules")] = GateAverage()
    """How updates become the next model; the gate moves slowly."""
