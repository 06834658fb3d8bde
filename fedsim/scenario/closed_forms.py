"""What the cost models need of a protocol: sizes and numbers that a formula has in place of a simulation."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from fedsim.metrics.cost_models.settings import StationFacts
from fedsim.models.table import ModelTable
from fedsim.protocols.block import Alternation
from fedsim.protocols.cohorts.super_nodes import SuperNodes
from fedsim.protocols.combination import Combination
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.schedules.compound_steps import CompoundSteps
from fedsim.protocols.schedules.rounds import Rounds

__all__ = ["ClosedForm", "closed_form"]


class ClosedForm(NamedTuple):
    """A protocol, in numbers."""

    protocol: Combination
    interval: int
    """T: rounds in a block; where devices answer to base stations, the iterations of a round."""

    @property
    def at_stations(self) -> bool:
        """Whether devices answer to base stations."""
        return self.protocol.when().at_stations

    def stations(self, members: Collection[int]) -> StationFacts | None:
        """What goes on at base stations with so many *members*; None where devices answer to the cloud."""
        schedule, cohort = self.protocol.when(), self.protocol.who()
        if not (isinstance(schedule, CompoundSteps) and isinstance(cohort, SuperNodes)):
            return None
        return StationFacts(len(members), min(cohort.devices, max(members)), schedule.iterations)

    def mean_cohort(self, clients: int) -> float:
        """kappa K: clients per round before rounding."""
        return self.protocol.who().mean_size(clients)

    def groups(self, clients: int, rounds: int) -> tuple[int, ...]:
        """f(r): how many groups *clients* form in each of so many *rounds*, idle ones included."""
        return self.protocol.who().group_numbers(clients, rounds, self.interval)

    def groups_by_counts(self, clients: int, rounds: int) -> tuple[int, ...]:
        """How many of them are formed anew by class counts, which takes long for thousands of clients."""
        return self.protocol.who().groups_by_counts(clients, rounds, self.interval)

    def alternation(self, model: ModelTable) -> Alternation:
        """In which rounds the whole *model* is sent."""
        return self.protocol.what()[0].alternation(self.interval, model)


def closed_form(protocol: Protocol) -> ClosedForm | None:
    """Of a combination that goes in rounds, or selects devices for single steps at base stations.

    None of any other protocol, for which no formula is known.
    """
    if not isinstance(protocol, Combination):
        return None
    schedule = protocol.when()
    if isinstance(schedule, Rounds) or (isinstance(schedule, CompoundSteps) and isinstance(protocol.who(), SuperNodes)):
        return ClosedForm(protocol, schedule.block_length())
    return None
