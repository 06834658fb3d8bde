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
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from simpy import Event

from fedsim.errors import Misfit, within
from fedsim.grouping.growth.logarithmic import Logarithmic
from fedsim.grouping.growth.settings import GrowthSettings
from fedsim.grouping.icg import ICG
from fedsim.grouping.settings import GroupingSettings
from fedsim.learning.objectives import Distilled, Objective, Plain, Proximal
from fedsim.models.table import ModelTable
from fedsim.protocols.block import Alternation, BlockRound
from fedsim.protocols.grouped import GroupedCohort
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.relay import Relay
from fedsim.protocols.rounds import Rounds
from fedsim.protocols.synchronisation.settings import SynchronisedPart
from fedsim.protocols.synchronisation.whole import Whole
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
    """Weights of the mean over groups: all equal (the papers), or by the samples that a group has trained on (the
    authors' public code)."""
    distillation: NonNegative = 0.0
    """Weight of a term that keeps a client's scores near those of the round's global model: 0.1 in the authors' public
    code, 0 in the papers. The global model then goes along from client to client, and is counted."""
    grouping_s: NonNegative = 0.0
    """Simulated seconds that the cloud takes to form groups; HFedMS reports up to 0.1."""


class GroupedTraining(Protocol, GroupedSettings):
    """What protocols with groups have in common: they name three parts."""

    place_of_part: ClassVar[tuple[str, ...]] = ()
    """The key under which the keys of the synchronised part stand."""

    @abstractmethod
    def parts(self) -> tuple[GroupingSettings, GrowthSettings, SynchronisedPart]:
        """How groups are formed, how many there are, and what of the model is synchronised."""

    def objective(self) -> Objective:
        """The clients' local objective."""
        return Distilled(self.distillation) if self.distillation else Plain()

    def run(self, world: World) -> Generator[Event, Any, None]:
        """Rounds of groups in parallel, and of their members in sequence."""
        grouping, growth, part = self.parts()
        cohort = GroupedCohort(grouping, growth, self.sampling_rate, self.shuffle, self.grouping_s, self.deadline_s)
        relay = Relay(self.on_loss, self.turn_s)
        schedule = Rounds(cohort, part, self.objective(), self.weighting, self.interval, self.deadline_s, relay)
        yield from schedule.run(world)

    @property
    def rounds_are_alike(self) -> bool:
        """Not in general: groups grow in number, and LASP has rounds of two kinds."""
        return False

    def check(self, world: World) -> None:
        """Every client needs a compute time, grouping its class counts, and the synchronised part what it needs."""
        super().check(world)
        grouping, _, part = self.parts()
        if grouping.needs_counts and (world.dataset.y is None or world.dataset.classes is None):
            why = "has numbers to predict" if world.dataset.regression else "declares numbers only"
            raise Misfit(
                f"grouping {grouping.name!r} goes by the classes of samples, and data set {world.dataset.name!r} "
                f"{why}; choose another data set, or random groups",
                "grouping",
            )
        if self.distillation and world.dataset.regression:
            raise Misfit(
                f"distillation compares scores of classes, and data set {world.dataset.name!r} has numbers to predict; "
                "leave it out",
                "distillation",
            )
        with within(*self.place_of_part):
            part.check(world)

    def columns(self, world: World) -> dict[str, float]:
        """Those of the synchronised part."""
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
            growth.groups(place.block, clients) if place.first and (place.block == 1 or not grouping.once) else 0
            for place in self._places(rounds)
        )

    def group_numbers(self, clients: int, rounds: int) -> tuple[int, ...]:
        """What the growth has for each round's block, or for the first one when groups are formed once."""
        grouping, growth, _ = self.parts()
        return tuple(growth.groups(1 if grouping.once else place.block, clients) for place in self._places(rounds))

    def _places(self, rounds: int) -> Iterator[BlockRound]:
        return (BlockRound.of(number, interval=self.interval) for number in range(1, rounds + 1))

    def alternation(self, model: ModelTable) -> Alternation:
        """As the synchronised part has it."""
        _, _, part = self.parts()
        return part.alternation(self.interval, model)


class STP(GroupedTraining):
    """Sequential-to-parallel training: ever more groups, in sequence inside and in parallel among each other."""

    place_of_part: ClassVar[tuple[str, ...]] = ("synchronise",)

    name: Literal["stp"] = "stp"
    grouping: Annotated[GroupingSettings, OneOf("groupings")] = Field(default_factory=ICG)
    """How groups are formed."""
    growth: Annotated[GrowthSettings, OneOf("growths")] = Field(default_factory=Logarithmic)
    """How many groups there are in which block."""
    synchronise: Annotated[SynchronisedPart, OneOf("synchronised_parts")] = Field(default_factory=Whole)
    """What of the model is trained, sent and averaged in which round of a block."""
    mu: NonNegative = 0.0
    """Strength of FedProx's proximal term, by which a client's model is kept near the one that it received; 0: none."""

    def parts(self) -> tuple[GroupingSettings, GrowthSettings, SynchronisedPart]:
        """As the scenario names them."""
        return self.grouping, self.growth, self.synchronise

    def objective(self) -> Objective:
        """Loss, and a proximal term if there is to be one."""
        return Proximal(self.mu) if self.mu else super().objective()

    @model_validator(mode="after")
    def _one_term(self) -> Self:
        if self.mu and self.distillation:
            raise Misfit(f"distillation={self.distillation:g} cannot be combined with mu={self.mu:g}", "distillation")
        return self
