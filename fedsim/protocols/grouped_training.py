"""What protocols have in common whose clients train in groups, in sequence inside and in parallel outside."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field

from fedsim.grouping.growth import GrowthSettings, Logarithmic
from fedsim.grouping.icg import ICG
from fedsim.grouping.settings import GroupingSettings
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.cohorts.grouped import GroupedCohort, GroupedSettings
from fedsim.protocols.combination import Combination, picked
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.schedules.relay import Relay
from fedsim.protocols.schedules.rounds import Rounds, RoundsSettings
from fedsim.settings import OneOf

__all__ = ["DynamicGroups", "GroupedTraining"]


class GroupedTraining(Combination, Relay, RoundsSettings, GroupedSettings):
    """What protocols with groups have in common: they say how groups are formed, and what is exchanged."""

    weighting: Literal["samples", "uniform"] = "uniform"
    """Weights of the groups' updates: all equal (the papers), or by the samples that a group has trained on (the
    authors' public code)."""
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples. The authors' public code has ``{name: distilled,
    coefficient: 0.1}``; the global model then goes along from client to client, and is counted."""

    @abstractmethod
    def forming(self) -> tuple[GroupingSettings, GrowthSettings]:
        """How groups are formed, and how many there are."""

    def exchanged(self) -> Exchange:
        """The whole model, if the protocol says nothing else."""
        return Whole()

    def who(self) -> GroupedCohort:
        """Groups."""
        grouping, growth = self.forming()
        return picked(GroupedCohort, self, grouping=grouping, growth=growth)

    def when(self) -> Rounds:
        """Rounds of groups in parallel, and of their members in sequence."""
        return picked(Rounds, self)

    def what(self) -> tuple[Exchange, Objective]:
        """The protocol's exchange, and the objective that the scenario names."""
        return self.exchanged(), self.objective


class DynamicGroups(GroupedTraining):
    """The keys of protocols whose groups are formed by ICG, and grow in number."""

    growth: Annotated[GrowthSettings, OneOf("growths")] = Field(default_factory=Logarithmic)
    """How many groups there are in which block."""
    grouping: ICG = Field(default_factory=ICG)
    """Inter-cluster grouping, by its keys."""

    def forming(self) -> tuple[GroupingSettings, GrowthSettings]:
        """ICG and growth."""
        return self.grouping, self.growth
