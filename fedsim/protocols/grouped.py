"""Groups that are formed anew when a block begins, by what clients report of their data.

(STP: Zeng et al., *HFedMS*, IEEE TCC 2023, algorithm 2, lines 1 to 4.) Every client that can be reached and is free
reports how many samples of each class it is about to train on; the cloud forms groups of those who have reported, and
draws some of them. Reports travel the network and are counted; how long the cloud thinks is a number in the scenario.
Groups that are kept for the whole run are drawn as long as one of their clients can be reached and is free.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from simpy import Event

from fedsim.data.stream.captures import classes_seen
from fedsim.grouping.growth.settings import GrowthSettings
from fedsim.grouping.settings import GroupingSettings
from fedsim.kernel.gather import Gathered, gather, give_up
from fedsim.protocols.block import BlockRound
from fedsim.protocols.rounds import Cohort, Group
from fedsim.protocols.selection import eligible_clients
from fedsim.protocols.world import Client, World

__all__ = ["BYTES_PER_COUNT", "GroupedCohort", "sampled_groups"]

BYTES_PER_COUNT = 4


def sampled_groups(groups: int, sampling_rate: float) -> int:
    """How many of the groups take part in a block: kappa M, rounded down, at least one.

    >>> sampled_groups(10, 0.3), sampled_groups(110, 0.3), sampled_groups(2, 0.3)
    (3, 33, 1)
    """
    return max(1, math.floor(sampling_rate * groups + 1e-9))


@dataclass
class GroupedCohort(Cohort):
    """The groups of one run."""

    grouping: GroupingSettings
    growth: GrowthSettings
    sampling_rate: float
    """kappa: the share of groups that take part."""
    shuffle: Literal["regroup", "round"]
    """When the members of a group change their order: when groups are formed, or with each round."""
    grouping_s: float
    """How long the cloud takes to form groups."""
    deadline_s: float | None
    """How long the cloud waits for reports at most."""
    _formed: list[Group] = field(default_factory=list)
    """All groups of the block."""
    _chosen: list[Group] = field(default_factory=list)
    """Those that take part."""

    def groups(self, world: World, place: BlockRound) -> Generator[Event, Any, Sequence[Group]]:
        """The groups that take part in a round."""
        if place.first:
            if not self._formed or not self.grouping.once:
                self._formed = yield from self._form(world, place)
            elif self.shuffle == "round":
                self._formed = _in_another_order(world, place, self._formed)
            there = list(range(len(self._formed)))
            if self.grouping.once:  # they may have been formed long ago
                free = set((yield from eligible_clients(world)))
                there = [number for number in there if not free.isdisjoint(self._formed[number])]
            rng = world.streams("selection", 0, place.number).generator()
            some = rng.permutation(there)[: sampled_groups(len(self._formed), self.sampling_rate)]
            self._chosen = [self._formed[number] for number in some]
            self._note(world, place, set(some.tolist()))
        elif self.shuffle == "round":
            self._chosen = _in_another_order(world, place, self._chosen)
        return self._chosen

    def _form(self, world: World, place: BlockRound) -> Generator[Event, Any, list[Group]]:
        """Groups of all clients, or of those whose report has arrived; none when none has."""
        if not self.grouping.needs_counts and self.grouping.once:
            clients: Sequence[Client] = world.clients
            counts = np.zeros((len(clients), 1), np.int64)
        else:
            clients, counts = yield from self._reported(world, place)
        if not clients:
            return []
        number = self.growth.groups(place.block, len(clients))
        rng = world.streams("grouping", 0, place.block).generator()
        formed = self.grouping.groups(counts, number, rng)
        if self.grouping_s:
            yield world.env.timeout(self.grouping_s)
        return [[clients[at] for at in members] for members in formed]

    def _reported(
        self, world: World, place: BlockRound
    ) -> Generator[Event, Any, tuple[list[Client], npt.NDArray[np.int64]]]:
        """Those who can take part, and their samples of each class."""
        clients = yield from eligible_clients(world)
        if not self.grouping.needs_counts:
            return clients, np.zeros((len(clients), 1), np.int64)
        trips = [world.start(client, _report(world, client, place)) for client in clients]
        gathered: Gathered = yield gather(world.env, trips, deadline_s=self.deadline_s)
        give_up(gathered.late, "its groups are formed")
        reports = sorted(gathered.arrived, key=lambda report: report[0])
        return [world.clients[index] for index, _ in reports], np.array([counts for _, counts in reports], np.int64)

    def _note(self, world: World, place: BlockRound, chosen: set[int]) -> None:
        for number, group in enumerate(self._formed):
            for position, client in enumerate(group):
                world.trace.groups.append((place.number, number, position, client.index, number in chosen))


def _in_another_order(world: World, place: BlockRound, groups: Sequence[Group]) -> list[Group]:
    """The same groups, the members of each in a new order."""
    rng = world.streams("grouping/order", 0, place.number).generator()
    return [[group[at] for at in rng.permutation(len(group))] for group in groups]


def _report(world: World, client: Client, place: BlockRound) -> Generator[Any, Any, tuple[int, npt.NDArray[np.int64]]]:
    """The class counts of the samples that the client would train on now go up to the cloud."""
    capture = None if client.stream is None else client.stream.capture(world.env.now, place.number)
    counts = classes_seen(world.dataset, client.index, capture, world.streams)
    yield world.network.send(client.index, client.uplink, float(BYTES_PER_COUNT * len(counts)))
    return client.index, counts
