"""STP, sequential-to-parallel training (Zeng et al., *HFedMS*, IEEE TCC 2023, section III-B and algorithm 2; FedGSP,
DASFAA 2022, section 3.1 and algorithm 1).

Clients are in groups: within a group they train one model in sequence, and groups train in parallel. The number of
groups grows from block to block, so that training turns from sequential to parallel. A share kappa of the groups takes
part in a block; the cloud averages their models.

The papers print a divisor f(r), or kappa M; here it is the number of groups whose model has arrived. With as many
groups as clients, each is a group of its own, and STP is FedAvg on a share kappa of them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from fedsim.grouping.growth import GrowthSettings, Logarithmic
from fedsim.grouping.icg import ICG
from fedsim.grouping.settings import GroupingSettings
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.grouped_training import GroupedTraining
from fedsim.settings import OneOf

__all__ = ["STP"]


class STP(GroupedTraining):
    """Sequential-to-parallel training: ever more groups, in sequence inside and in parallel among each other."""

    name: Literal["stp"] = "stp"
    grouping: Annotated[GroupingSettings, OneOf("groupings")] = Field(default_factory=ICG)
    """How groups are formed."""
    growth: Annotated[GrowthSettings, OneOf("growths")] = Field(default_factory=Logarithmic)
    """How many groups there are in which block."""
    exchange: Annotated[Exchange, OneOf("exchanges")] = Field(default_factory=Whole)
    """What of the model is sent, trained and sent back in which round of a block."""

    def forming(self) -> tuple[GroupingSettings, GrowthSettings]:
        """As the scenario names them."""
        return self.grouping, self.growth

    def exchanged(self) -> Exchange:
        """As the scenario names it."""
        return self.exchange
