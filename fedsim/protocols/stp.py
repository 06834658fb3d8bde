"""STP, sequential-to-parallel training (Zeng et al., *HFedMS*, IEEE TCC 2023, section III-B and algorithm 2; FedGSP,
DASFAA 2022, section 3.1 and algorithm 1).

Clients are in groups: within a group they train one model in sequence, and groups train in parallel. The number of
groups grows from block to block, so that training turns from sequential to parallel. A share kappa of the groups takes
part in a block; the cloud averages their models.

The papers print a divisor f(r), or kappa M; here it is the number of groups whose model has arrived. With as many
groups as clients, each is a group of its own, and STP is FedAvg on a share kappa of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from simpy import Event

from fedsim.errors import Misfit, within
from fedsim.grouping.growth.logarithmic import Logarithmic
from fedsim.grouping.growth.settings import GrowthSettings
from fedsim.grouping.icg import ICG
from fedsim.grouping.settings import GroupingSettings
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import ServerRule
from fedsim.models.table import ModelTable
from fedsim.protocols.block import Alternation, BlockRound
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.whole import Whole
from fedsim.protocols.grouped import GroupedCohort
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.relay import Relay
from fedsim.protocols.rounds import Rounds
from fedsim.protocols.world import World
from fedsim.settings import Count, Fraction, NonNegative, OneOf, Positive, Settings

__all__ = ["STP", "GroupedSettings", "GroupedTraining"]


class GroupedSettings(Settings):
    """The keys of protocols whose clients train in groups, beside how groups are formed."""

    sampling_rate: Fraction = 0.3
    """kappa: share of the groups that takes part in a block, rounded down, at least one."""
    interval: Count = 1
    """T: rounds in a block; groups are formed and drawn when a block begins, and take part in all of it."""
    shuffle: Literal["regroup", "round"] = "regroup"
    """When the order within groups changes: when groups are formed, or, as in the authors' public code, with each
    round."""
    on_loss: Literal["skip", "abandon"] = "skip"
    """What becomes of a group when one of its clients is lost or late: it goes on without that client's work, from the
    base station that has the model, or it is abandoned."""
    turn_s: Positive | None = None
    """A client is late, and its group goes on without it, so many seconds after it was its turn."""
    deadline_s: Positive | None = None
    """A round, its reports and its scatter each end at the latest after so many seconds."""
    weighting: Literal["samples", "uniform"] = "uniform"
    """Weights of the groups' updates: all equal (the papers), or by the samples that a group has trained on (the
    authors' public code)."""
    objective: Annotated[Objective, OneOf("objectives")] = Plain()
    """What clients minimise beside the loss on their samples. The authors' public code has ``{name: distilled,
    coefficient: 0.1}``; the global model then goes along from client to client, and is counted."""
    server: Annotated[ServerRule, OneOf("rules")] = Mean()
    """How updates become the next model."""
    grouping_s: NonNegative = 0.0
    """Simulated seconds that the cloud takes to form groups; HFedMS reports up to 0.1."""


class GroupedTraining(Protocol, GroupedSettings):
    """What protocols with groups have in common: they name three parts."""

    place_of_exchange: ClassVar[tuple[str, ...]] = ()
    """The key under which the keys of the exchange stand."""

    @abstractmethod
    def parts(self) -> tuple[GroupingSettings, GrowthSettings, Exchange]:
        """How groups are formed, how many there are, and what of the model is exchanged."""

    def run(self, world: World) -> Generator[Event, Any, None]:
        """Rounds of groups in parallel, and of their members in sequence."""
        grouping, growth, exchange = self.parts()
        cohort = GroupedCohort(grouping, growth, self.sampling_rate, self.shuffle, self.grouping_s, self.deadline_s)
        relay = Relay(self.on_loss, self.turn_s)
        schedule = Rounds(
            cohort, exchange, self.objective, self.weighting, self.interval, self.deadline_s, relay, self.server
        )
        yield from schedule.run(world)

    @property
    def rounds_are_alike(self) -> bool:
        """Not in general: groups grow in number, and LASP has rounds of two kinds."""
        return False

    def check(self, world: World) -> None:
        """Every client needs a compute time, grouping its class counts, and each part what it needs."""
        super().check(world)
        grouping, _, exchange = self.parts()
        if grouping.needs_counts and (world.dataset.y is None or world.dataset.classes is None):
            why = "has numbers to predict" if world.dataset.regression else "declares numbers only"
            raise Misfit(
                f"grouping {grouping.name!r} goes by the classes of samples, and data set {world.dataset.name!r} "
                f"{why}; choose another data set, or random groups",
                "grouping",
            )
        with within("objective"):
            self.objective.check(world.dataset)
        with within(*self.place_of_exchange):
            exchange.check(world)

    def columns(self, world: World) -> dict[str, float]:
        """Those of the exchange."""
        return self.parts()[2].columns(world)

    def cohort_size(self, clients: int) -> float:
        """``sampling_rate * clients``, the papers' kappa K."""
        return self.sampling_rate * clients

    def groups_by_counts(self, clients: int, rounds: int) -> tuple[int, ...]:
        """What the growth has for each block, in its first round, or in the run's when groups are formed once."""
        grouping, growth, _ = self.parts()
        if not grouping.needs_counts:
            return super().groups_by_counts(clients, rounds)
        return tuple(
            growth.groups(at.block, clients) if at.first and (at.block == 1 or not grouping.once) else 0
            for at in self._places(rounds)
        )

    def group_numbers(self, clients: int, rounds: int) -> tuple[int, ...]:
        """What the growth has for each round's block, or for the first one when groups are formed once."""
        grouping, growth, _ = self.parts()
        return tuple(growth.groups(1 if grouping.once else at.block, clients) for at in self._places(rounds))

    def _places(self, rounds: int) -> Iterator[BlockRound]:
        return (BlockRound.of(number, interval=self.interval) for number in range(1, rounds + 1))

    def alternation(self, model: ModelTable) -> Alternation:
        """As the exchange has it."""
        _, _, exchange = self.parts()
        return exchange.alternation(self.interval, model)


class STP(GroupedTraining):
    """Sequential-to-parallel training: ever more groups, in sequence inside and in parallel among each other."""

    place_of_exchange: ClassVar[tuple[str, ...]] = ("exchange",)

    name: Literal["stp"] = "stp"
    grouping: Annotated[GroupingSettings, OneOf("groupings")] = Field(default_factory=ICG)
    """How groups are formed."""
    growth: Annotated[GrowthSettings, OneOf("growths")] = Field(default_factory=Logarithmic)
    """How many groups there are in which block."""
    exchange: Annotated[Exchange, OneOf("exchanges")] = Field(default_factory=Whole)
    """What of the model is sent, trained and sent back in which round of a block."""

    def parts(self) -> tuple[GroupingSettings, GrowthSettings, Exchange]:
        """As the scenario names them."""
        return self.grouping, self.growth, self.exchange
