"""FlexiFed (Wang et al., *FlexiFed: Personalized federated learning for edge clients with heterogeneous model
architectures*, WWW 2023), and what it is compared with: Clustered-FL and Standalone.

Each device class may have a model of its own. Clients train in rounds as in FedAvg; what is averaged is the layers that
their models have in common.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.averaging import ParallelTraining
from fedsim.protocols.exchanges.common_layers import CommonLayers, CommonSettings
from fedsim.settings import OneOf

__all__ = ["ClusteredFL", "FlexiFed", "Standalone"]


class LayerWise(ParallelTraining):
    """The keys that all three have."""

    weighting: Literal["samples", "uniform"] = "uniform"
    """Weights of the updates: all equal (as in the paper's algorithms), or by training samples (as in its Eq. 1)."""
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples."""

    def local_objective(self) -> Objective:
        """As the scenario names it."""
        return self.objective


class FlexiFed(LayerWise, CommonSettings):
    """FlexiFed: clients of different architectures average the layers that their models have in common."""

    name: Literal["flexifed"] = "flexifed"
    strategy: Literal["max", "clustered", "basic"] = "max"
    """max: each layer over all whose models begin with the same layers up to it; basic: the layers that all have in
    common; clustered: these, and what is behind over those who have the same model."""

    def exchanged(self) -> CommonLayers:
        """Common layers, by the strategy."""
        keys = {key: getattr(self, key) for key in CommonSettings.model_fields}
        return CommonLayers(strategy=self.strategy, **keys)


class ClusteredFL(LayerWise):
    """Clustered-FL: FedAvg among those who have the same architecture, as FlexiFed compares with it."""

    name: Literal["clustered_fl"] = "clustered_fl"
    init: Literal["common", "own"] = "common"
    """common: layers that models have in common start alike in all; own: each client draws all of its own."""

    def exchanged(self) -> CommonLayers:
        """All layers of models that are identical."""
        return CommonLayers(strategy="identical", init=self.init)


class Standalone(LayerWise):
    """Standalone: each client trains on its own, and nothing is sent, as FlexiFed compares with it."""

    name: Literal["standalone"] = "standalone"
    init: Literal["common", "own"] = "common"
    """common: layers that models have in common start alike in all; own: each client draws all of its own."""

    def exchanged(self) -> CommonLayers:
        """Nothing."""
        return CommonLayers(strategy="nobody", init=self.init)
