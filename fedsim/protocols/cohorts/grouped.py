"""Groups that are formed anew when a block begins, by what clients report of their data.

(STP: Zeng et al., *HFedMS*, IEEE TCC 2023, algorithm 2, lines 1 to 4.) Every client that can be reached and is free
reports how many samples of each class it is about to train on; the cloud forms groups of those who have reported, and
draws some of them. Reports travel the network and are counted; how long the cloud thinks is a number in the scenario.
Groups that are kept for the whole run are drawn as long as one of their clients can be reached and is free.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from simpy import Event

from fedsim.errors import Misfit
from fedsim.grouping.growth import GrowthSettings, Logarithmic
from fedsim.grouping.icg import ICG
from fedsim.grouping.settings import GroupingSettings
from fedsim.kernel.gather import give_up
from fedsim.kernel.trace import Pause
from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.cohort import Cohort, Draw, Group
from fedsim.protocols.cohorts.label_reports import check_that_there_are_classes, next_counts, report_to_cloud
from fedsim.protocols.cohorts.random import eligible_clients
from fedsim.protocols.world import Client, World
from fedsim.settings import Fraction, NonNegative, OneOf, Settings

__all__ = ["GroupedCohort", "GroupedSettings", "sampled_groups"]


def sampled_groups(groups: int, sampling_rate: float) -> int:
    """How many of the groups take part in a block: kappa M, rounded down, at least one.

    >>> sampled_groups(10, 0.3), sampled_groups(110, 0.3), sampled_groups(2, 0.3)
    (3, 33, 1)
    """
    return max(1, math.floor(sampling_rate * groups + 1e-9))


class GroupedSettings(Settings):
    """The keys of groups, beside how they are formed."""

    sampling_rate: Fraction = 0.3
    """kappa: share of the groups that takes part in a block, rounded down, at least one."""
    shuffle: Literal["regroup", "round"] = "regroup"
    """When the order within groups changes: when groups are formed, or, as in the authors' public code, with each
    round."""
    grouping_s: NonNegative = 0.0
    """Simulated seconds that the cloud takes to form groups; HFedMS reports up to 0.1."""


class GroupedCohort(Cohort, GroupedSettings):
    """Groups that are formed by what clients report of their data, of which some are drawn when a block begins."""

    steady: ClassVar[bool] = False
    in_sequence: ClassVar[bool] = True

    name: Literal["grouped"] = "grouped"
    grouping: Annotated[GroupingSettings, OneOf("groupings")] = Field(default_factory=ICG)
    """How groups are formed."""
    growth: Annotated[GrowthSettings, OneOf("growths")] = Field(default_factory=Logarithmic)
    """How many groups there are in which block."""

    def begin(self, deadline_s: float | None) -> Draw:
        """No group is formed yet."""
        return _GroupedDraw(self, deadline_s)

    def check(self, world: World) -> None:
        """Grouping may need class counts."""
        if self.grouping.needs_counts:
            what = f"grouping {self.grouping.name!r}"
            check_that_there_are_classes(world, what, "choose another data set, or random groups", "grouping")

    def check_schedule(self, station_size: int | None) -> None:
        """Groups in sequence belong to the cloud."""
        if station_size is not None:
            raise Misfit(
                "groups that train in sequence are formed by the cloud, over all stations; choose cohort: {name: "
                "random} or {name: super_nodes}, or schedule: {name: rounds}"
            )

    def mean_size(self, clients: int) -> float:
        """``sampling_rate * clients``, the papers' kappa K."""
        return self.sampling_rate * clients

    def groups_by_counts(self, clients: int, rounds: int, interval: int) -> tuple[int, ...]:
        """What the growth has for each block, in its first round, or in the run's when groups are formed once."""
        if not self.grouping.needs_counts:
            return super().groups_by_counts(clients, rounds, interval)
        return tuple(
            self.growth.groups(at.block, clients) if at.first and (at.block == 1 or not self.grouping.once) else 0
            for at in _rounds(rounds, interval)
        )

    def group_numbers(self, clients: int, rounds: int, interval: int) -> tuple[int, ...]:
        """What the growth has for each round's block, or for the first one when groups are formed once."""
        return tuple(
            self.growth.groups(1 if self.grouping.once else at.block, clients) for at in _rounds(rounds, interval)
        )


def _rounds(rounds: int, interval: int) -> Iterator[BlockRound]:
    return (BlockRound.of(number, interval=interval) for number in range(1, rounds + 1))


@dataclass
class _GroupedDraw(Draw):
    settings: GroupedCohort
    deadline_s: float | None
    """How long the cloud waits for reports at most."""
    _formed: list[Group] = field(default_factory=list)
    """All groups of the block."""
    _chosen: list[Group] = field(default_factory=list)
    """Those that take part."""

    def groups(self, world: World, at: BlockRound) -> Generator[Event, Any, Sequence[Group]]:
        """The groups that take part in a round."""
        if at.first:
            if not self._formed or not self.settings.grouping.once:
                self._formed = yield from self._form(world, at)
            elif self.settings.shuffle == "round":
                self._formed = _in_another_order(world, at, self._formed)
            there = list(range(len(self._formed)))
            if self.settings.grouping.once:  # they may have been formed long ago
                free = set((yield from eligible_clients(world)))
                there = [number for number in there if not free.isdisjoint(self._formed[number])]
            rng = world.streams("selection", 0, at.number).generator()
            some = rng.permutation(there)[: sampled_groups(len(self._formed), self.settings.sampling_rate)]
            self._chosen = [self._formed[number] for number in some]
            self._note(world, at, set(some.tolist()))
        elif self.settings.shuffle == "round":
            self._chosen = _in_another_order(world, at, self._chosen)
        return self._chosen

    def _form(self, world: World, at: BlockRound) -> Generator[Event, Any, list[Group]]:
        """Groups of all clients, or of those whose report has arrived; none when none has."""
        if not self.settings.grouping.needs_counts and self.settings.grouping.once:
            clients: Sequence[Client] = world.asked
            counts = np.zeros((len(clients), 1), np.int64)
        else:
            clients, counts = yield from self._reported(world, at)
        if not clients:
            return []
        number = self.settings.growth.groups(at.block, len(clients))
        rng = world.streams("grouping", 0, at.block).generator()
        formed = self.settings.grouping.groups(counts, number, rng)
        if self.settings.grouping_s:
            yield from world.pause(Pause.SERVER, self.settings.grouping_s)
        return [[clients[at] for at in members] for members in formed]

    def _reported(
        self, world: World, at: BlockRound
    ) -> Generator[Event, Any, tuple[list[Client], npt.NDArray[np.int64]]]:
        """Those who can take part, and their samples of each class."""
        clients = yield from eligible_clients(world)
        if not self.settings.grouping.needs_counts:
            return clients, np.zeros((len(clients), 1), np.int64)
        trips = [
            world.start(client, report_to_cloud(world, client, next_counts(world, client, at.number)))
            for client in clients
        ]
        gathered = yield from world.gather(trips, deadline_s=self.deadline_s)
        give_up(gathered.late, "its groups are formed")
        reports = sorted(gathered.arrived, key=lambda report: report[0])
        return [world.clients[index] for index, _ in reports], np.array([counts for _, counts in reports], np.int64)

    def _note(self, world: World, at: BlockRound, chosen: set[int]) -> None:
        for number, group in enumerate(self._formed):
            for position, client in enumerate(group):
                world.trace.groups.append((at.number, number, position, client.index, number in chosen))


def _in_another_order(world: World, at: BlockRound, groups: Sequence[Group]) -> list[Group]:
    """The same groups, the members of each in a new order."""
    rng = world.streams("grouping/order", 0, at.number).generator()
    return [[group[at] for at in rng.permutation(len(group))] for group in groups]
