"""FedGSP (Zeng et al., *Heterogeneous federated learning via grouped sequential-to-parallel training*, DASFAA 2022,
algorithm 1), and the static protocols that it is compared with (section 4).

Groups are formed anew in every round, by inter-cluster grouping. NaiveGSP keeps random groups for the whole run, as
Astraea does (Duan et al., ICCD 2019); with ICG, it forms them once by that.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, Self

from pydantic import Field, model_validator

from fedsim.errors import Misfit
from fedsim.grouping.growth import Constant, GrowthSettings
from fedsim.grouping.icg import ICG
from fedsim.grouping.settings import GroupingSettings, RandomGroups
from fedsim.protocols.grouped_training import DynamicGroups, GroupedTraining
from fedsim.settings import Count

__all__ = ["FedGSP", "NaiveGSP", "NaiveGSPWithICG"]


class FedGSP(DynamicGroups):
    """FedGSP: ever more groups of alike data, formed anew in every round, in sequence inside and parallel outside."""

    name: Literal["fedgsp"] = "fedgsp"


class NaiveGSP(GroupedTraining):
    """Fixed random groups of equal size, in sequence inside and in parallel outside: FedGSP's static yardstick."""

    name: Literal["naive_gsp"] = "naive_gsp"
    groups: Count = 10
    """How many groups there are, unless there are fewer clients."""
    leftover: Literal["idle", "spread"] = "idle"
    """Clients that equal groups have no place for: they sit out, or go to one group each."""

    def forming(self) -> tuple[GroupingSettings, GrowthSettings]:
        """Random groups, formed once, always as many."""
        return RandomGroups(leftover=self.leftover), Constant(beta=self.groups)


class NaiveGSPWithICG(GroupedTraining):
    """Fixed groups of equal size that ICG forms in the first round: FedGSP's ablation without growth."""

    name: Literal["naive_gsp_icg"] = "naive_gsp_icg"
    groups: Count = 10
    """How many groups there are, unless there are fewer clients."""
    grouping: ICG = Field(default_factory=partial(ICG, once=True))
    """Inter-cluster grouping, by its keys; `once` is always true here."""

    @model_validator(mode="after")
    def _formed_once(self) -> Self:
        if not self.grouping.once:
            if "once" in self.grouping.model_fields_set:
                raise Misfit(
                    "once=false is another protocol, stp with growth: {name: constant}; leave it out",
                    "grouping",
                    "once",
                )
            object.__setattr__(self, "grouping", self.grouping.model_copy(update={"once": True}))
        return self

    def forming(self) -> tuple[GroupingSettings, GrowthSettings]:
        """ICG, once, always as many groups."""
        return self.grouping, Constant(beta=self.groups)
