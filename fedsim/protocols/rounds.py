"""The schedule of most protocols: in each round groups train in parallel, and the cloud waits for them.

A group is one client, or several that train in sequence. The round ends when enough groups have answered, when none can
answer any more, or at the deadline; the mean of what arrived is the next round's model, or the part of it that is
synchronised in this round. A round in which nothing arrived leaves the model as it was. Rounds come in blocks: who
takes part is chosen when a block begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from simpy import Event

from fedsim.kernel.gather import Gathered, Journey, at_the_end_of, gather, give_up
from fedsim.kernel.trip import Trip
from fedsim.learning.learner import Contribution, Model
from fedsim.learning.objectives import Objective
from fedsim.protocols.block import BlockRound
from fedsim.protocols.journey import Task, Update, journey
from fedsim.protocols.relay import Relay, Turns, may_begin
from fedsim.protocols.synchronisation.settings import SynchronisedPart
from fedsim.protocols.world import Client, World

__all__ = ["Cohort", "Group", "Rounds"]

Group = Sequence[Client]
"""Clients that train one model in sequence, in their order."""


class Cohort(ABC):
    """Who takes part, for one run."""

    @abstractmethod
    def groups(self, world: World, place: BlockRound) -> Generator[Event, Any, Sequence[Group]]:
        """The groups of a round, in the order in which they are asked; waits until there can be some."""

    def enough(self, world: World) -> int | None:
        """How many groups' updates end a round; None: all."""
        return None


@dataclass(frozen=True)
class Rounds:
    """Rounds in parallel, in sequence, or both, of the whole model or of a part, averaged in the cloud."""

    cohort: Cohort
    part: SynchronisedPart
    objective: Objective
    weighting: Literal["samples", "uniform"]
    interval: int = 1
    """Rounds in a block."""
    deadline_s: float | None = None
    relay: Relay = field(default_factory=Relay)

    def run(self, world: World) -> Generator[Event, Any, None]:
        """Rounds until the run is over."""
        model = world.learner.initial_model()
        for round_number in world.loop.rounds():
            place = BlockRound.of(round_number, interval=self.interval)
            groups = yield from self.cohort.groups(world, place)
            model, counts = yield from self._round(world, place, groups, model)
            members = [client for group in groups for client in group]
            yield from self.part.spread(world, place, model, members, self.deadline_s)
            world.loop.finish_round(model, **counts)

    def _round(
        self, world: World, place: BlockRound, groups: Sequence[Group], model: Model
    ) -> Generator[Event, Any, tuple[Model, dict[str, int]]]:
        # A generator of its own: what it gathered is forgotten before the model is evaluated.
        task = self.part.task(world, place, model, self.objective)
        yield from _until_somebody_can_begin(world, groups, task)
        turns, sizes = Turns(), dict[Journey, int]()
        for group in groups:
            if len(group) > 1 or may_begin(group[0], task):
                sizes[self._sent_out(world, group, task, turns)] = len(group)
        enough = self.cohort.enough(world)
        wanted = len(sizes) if enough is None else min(len(sizes), enough)
        gathered: Gathered = yield gather(world.env, list(sizes), deadline_s=self.deadline_s, count=wanted)
        turns.open = False
        if world.cancel_late:
            give_up(gathered.late, "its round is over")
            yield world.env.timeout(0)  # what is late has stopped before the round ends
        if gathered.arrived:
            yield world.env.timeout(world.cloud.aggregation_s)
            contributions = [self._contribution(update) for update in gathered.arrived]
            mean = world.learner.mean(task.model, contributions, round_number=place.number)
            model = {**model, **mean}
        selected = sum(map(len, groups))
        participants = sum(update.clients for update in gathered.arrived)
        late_ones = sum(sizes[late] for late in gathered.late)
        return model, {
            "selected": selected,
            "participants": participants,
            "lost": selected - participants - late_ones,
            "late": late_ones,
        }

    def _sent_out(self, world: World, group: Group, task: Task, turns: Turns) -> Trip:
        """A group on its way; several clients are lost at once when none of them can begin."""
        if len(group) > 1:
            return Trip(world.env, self.relay.run(world, group, task, turns), of=group)
        (client,) = group
        return world.start(client, journey(world, client, task))

    def _contribution(self, update: Update) -> Contribution:
        return Contribution(update.client, update.model, update.samples if self.weighting == "samples" else 1.0)


def _until_somebody_can_begin(world: World, groups: Sequence[Group], task: Task) -> Generator[Event, Any, None]:
    """Wait while clients of the block have what they need, but none can be reached and is free; not without hope."""
    members = [client for group in groups for client in group]
    while not any(may_begin(client, task) for client in members):
        if not any(task.suits(client) and not world.outages.fate(client.attachment) for client in members):
            return
        yield world.outages.changed
        yield at_the_end_of(world.env, 0.0)  # who is freed in this instant is free
