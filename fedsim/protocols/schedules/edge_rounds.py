"""Rounds at base stations between those of the cloud: hierarchical federated averaging.

(Liu et al., *Client-edge-cloud hierarchical federated learning*, ICC 2020, algorithm 1: kappa_2 edge aggregations
between two cloud aggregations; kappa_1 is given by ``training.epochs``.) Weights are by samples at both levels. The
clients of a round are chosen when it begins, and take part in all its edge rounds.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

from simpy import Event

from fedsim.learning.rules.mean import Mean
from fedsim.protocols.block import BlockRound
from fedsim.protocols.schedules.schedule import Parts
from fedsim.protocols.schedules.stations import Station, Stations, StationsSettings
from fedsim.protocols.world import Client
from fedsim.settings import Count

__all__ = ["EdgeRounds", "EdgeRoundsSettings"]


class EdgeRoundsSettings(StationsSettings):
    """The keys of rounds at base stations."""

    edge_rounds: Count = 5
    """Rounds of each base station with its clients in a round of the cloud."""


class EdgeRounds(Stations, EdgeRoundsSettings):
    """Local training at base stations, some rounds of it, and then an average of the stations' models in the cloud."""

    name: Literal["edge_rounds"] = "edge_rounds"

    @property
    def most_iterations(self) -> int:
        """Rounds at each station."""
        return self.edge_rounds

    def iteration(
        self, station: Station, parts: Parts, at: BlockRound, clients: Sequence[Client]
    ) -> Generator[Event, Any, None]:
        """*clients* train, and the station takes the mean of their models."""
        task = parts.exchange.task(station.site, at, parts.objective, self.inner_codec)
        updates = yield from self.collected(station, clients, task)
        yield from station.site.fold(Mean(), updates, round_number=at.number)
