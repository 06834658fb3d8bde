"""Hierarchical federated averaging (Liu et al., *Client-edge-cloud hierarchical federated learning*, ICC 2020).

Base stations average the models of their clients in some rounds, and then the cloud averages those of the stations.
With one edge round it is FedAvg; with one station, FedAvg whose cohort is drawn once in so many rounds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.cohorts.random import CohortSettings, RandomCohort
from fedsim.protocols.combination import Combination, picked
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.schedules.edge_rounds import EdgeRounds, EdgeRoundsSettings
from fedsim.settings import OneOf

__all__ = ["Hierarchical"]


class Hierarchical(Combination, EdgeRoundsSettings, CohortSettings):
    """Hierarchical FedAvg: base stations average the models of their clients, and the cloud those of the stations."""

    name: Literal["hierarchical"] = "hierarchical"
    exchange: Annotated[Exchange, OneOf("exchanges")] = Whole()
    """What of the model is sent between a station and its clients, trained and sent back, in which edge round."""
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples."""

    def who(self) -> RandomCohort:
        """A random cohort, drawn when a round begins."""
        return picked(RandomCohort, self)

    def when(self) -> EdgeRounds:
        """Rounds at base stations."""
        return picked(EdgeRounds, self)

    def what(self) -> tuple[Exchange, Objective]:
        """As the scenario names them."""
        return self.exchange, self.objective
