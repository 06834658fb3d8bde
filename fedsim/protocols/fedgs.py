"""FedGS, federated group synchronisation (Li et al., *Data heterogeneity-robust federated learning via group client
selection in industrial IoT*, IEEE Internet of Things Journal 2022, doi 10.1109/JIOT.2022.3161943).

A factory is a base station with its devices. In each iteration some of these, chosen anew by GBP-CS, form a super node
and make a single step; after T iterations the cloud averages the models of the factories.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fedsim.grouping.subset.random import RandomSubset
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.cohorts.super_nodes import SuperNodes, SuperNodesSettings
from fedsim.protocols.combination import Combination, picked
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.schedules.compound_steps import CompoundSteps, CompoundStepsSettings
from fedsim.settings import OneOf

__all__ = ["FedGS", "FedGSRandom"]


class GroupSynchronisation(Combination, CompoundStepsSettings, SuperNodesSettings):
    """The keys of FedGS, however its devices are selected."""

    weighting: Literal["samples", "uniform"] = "uniform"
    """Weights of the factories' models: all equal (Eq. 5), or by the samples that they were trained on."""
    exchange: Annotated[Exchange, OneOf("exchanges")] = Whole()
    """What of the model is sent between a station and its devices, trained and sent back, in which iteration."""
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What devices minimise beside the loss on their samples."""

    def who(self) -> SuperNodes:
        """Super nodes."""
        return picked(SuperNodes, self)

    def when(self) -> CompoundSteps:
        """Single steps in factories."""
        return picked(CompoundSteps, self)

    def what(self) -> tuple[Exchange, Objective]:
        """As the scenario names them."""
        return self.exchange, self.objective


class FedGS(GroupSynchronisation):
    """FedGS: super nodes of devices that together look like all data, in single steps, averaged after T of them."""

    name: Literal["fedgs"] = "fedgs"


class FedGSRandom(GroupSynchronisation):
    """FedGS whose devices are all drawn at random, and report nothing: what is left of it without GBP-CS."""

    name: Literal["fedgs_random"] = "fedgs_random"
    selector: RandomSubset = RandomSubset()
    """At random."""
