"""The schedule of most protocols: in each round groups train in parallel, and the cloud waits for them.

A group is one client, or several that train in sequence. The round ends when enough groups have answered, when none can
answer any more, or at the deadline; the server's rule makes the next round's model of what arrived, or the part of it
that this round has exchanged. A round in which nothing arrived leaves the model as it was. Rounds come in blocks: who
takes part is chosen when a block begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from simpy import Event

from fedsim.kernel.gather import Journey, at_the_end_of
from fedsim.kernel.trip import Trip
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import ServerRule
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.relay import Relay
from fedsim.protocols.site import RoundGate, Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World

__all__ = ["Cohort", "Group", "Rounds"]

Group = Sequence[Client]
"""Clients that train one model in sequence, in their order."""


class Cohort(ABC):
    """Who takes part, for one run."""

    @abstractmethod
    def groups(self, world: World, at: BlockRound) -> Generator[Event, Any, Sequence[Group]]:
        """The groups of a round, in the order in which they are asked; waits until there can be some."""

    def enough(self, world: World) -> int | None:
        """How many groups' updates end a round; None: all."""
        return None


@dataclass(frozen=True)
class Rounds:
    """Rounds in parallel, in sequence, or both, of the whole model or of a part, folded in the cloud."""

    cohort: Cohort
    exchange: Exchange
    objective: Objective
    weighting: Literal["samples", "uniform"]
    interval: int = 1
    """Rounds in a block."""
    deadline_s: float | None = None
    relay: Relay = field(default_factory=Relay)
    rule: ServerRule = field(default_factory=Mean)

    def run(self, world: World) -> Generator[Event, Any, None]:
        """Rounds until the run is over."""
        cloud = Site(world)
        for round_number in world.loop.rounds():
            at = BlockRound.of(round_number, interval=self.interval)
            groups = yield from self.cohort.groups(world, at)
            counts = yield from self._round(cloud, at, groups)
            members = [client for group in groups for client in group]
            yield from self.exchange.spread(cloud, at, members, self.deadline_s)
            world.loop.finish_round(cloud.state["model"], **counts)

    def _round(self, cloud: Site, at: BlockRound, groups: Sequence[Group]) -> Generator[Event, Any, dict[str, int]]:
        # A generator of its own: what it gathered is forgotten before the model is evaluated.
        task = self.exchange.task(cloud, at, self.objective)
        yield from _until_somebody_can_begin(cloud.world, groups, task)
        gate = RoundGate()
        sizes: dict[Journey, int] = {self._sent_out(cloud, group, task, gate): len(group) for group in groups}
        enough = self.cohort.enough(cloud.world)
        wanted = len(sizes) if enough is None else min(len(sizes), enough)
        gathered = yield from cloud.collect(list(sizes), count=wanted, deadline_s=self.deadline_s, gate=gate)
        updates = gathered.arrived
        if self.weighting == "uniform":
            updates = [update._replace(weight=1.0) for update in updates]
        yield from cloud.fold(self.rule, updates, round_number=at.number)
        selected = sum(map(len, groups))
        participants = sum(update.clients for update in updates)
        late_ones = sum(sizes[late] for late in gathered.late)
        return {
            "selected": selected,
            "participants": participants,
            "lost": selected - participants - late_ones,
            "late": late_ones,
        }

    def _sent_out(self, cloud: Site, group: Group, task: Task, gate: RoundGate) -> Trip:
        """A group on its way, or lost at once, as its clients cannot begin."""
        if len(group) > 1:
            return Trip(cloud.world.env, self.relay.run(cloud.world, group, task, gate), of=group)
        return cloud.visit(group[0], task)


def _until_somebody_can_begin(world: World, groups: Sequence[Group], task: Task) -> Generator[Event, Any, None]:
    """Wait while clients of the block have what they need, but none can be reached and is free; not without hope."""
    members = [client for group in groups for client in group]
    while not any(task.may_begin(client) for client in members):
        if not any(task.suits(client) and not world.outages.fate(client.attachment) for client in members):
            return
        yield world.outages.changed
        yield at_the_end_of(world.env, 0.0)  # who is freed in this instant is free
