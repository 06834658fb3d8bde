"""The schedule of most protocols: in each round groups train in parallel, and the cloud waits for them.

A group is one client, or several that train in sequence. The round ends when enough groups have answered, when none can
answer any more, or at the deadline; the server's rule makes the next round's model of what arrived, or the part of it
that this round has exchanged. A round in which nothing arrived leaves the model as it was. Rounds come in blocks: who
takes part is chosen when a block begins.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, ClassVar, Literal

from simpy import Event

from fedsim.kernel.gather import Journey, at_the_end_of
from fedsim.kernel.trip import Trip
from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.cohort import Draw, Group
from fedsim.protocols.finetuning import fine_tune
from fedsim.protocols.schedules.relay import Relay, Turns
from fedsim.protocols.schedules.schedule import Parts, Schedule
from fedsim.protocols.site import RoundGate, Site
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World
from fedsim.settings import Count, Positive, Settings

__all__ = ["Rounds", "RoundsSettings"]


class RoundsSettings(Settings):
    """The keys of rounds."""

    interval: Count = 1
    """T: rounds in a block; the cohort is drawn when a block begins, and takes part in all of it."""
    deadline_s: Positive | None = None
    """A round ends at the latest after so many seconds; what arrives exactly then still counts.

    Times are sums of binary fractions: leave a hair of room where decimal seconds should meet exactly.
    """
    weighting: Literal["samples", "uniform"] = "samples"
    """Weights of the updates: by training samples, or all equal."""


class Rounds(Schedule, Relay, RoundsSettings):
    """Rounds in parallel, in sequence, or both: the cloud waits for the groups that it has asked."""

    name: Literal["rounds"] = "rounds"
    times_finetuning: ClassVar[bool] = True

    def block_length(self) -> int:
        """T."""
        return self.interval

    def run(self, world: World, parts: Parts) -> Generator[Event, Any, None]:
        """Rounds until the run is over."""
        cloud, draw = parts.exchange.site(world, parts.server), parts.cohort.begin(self.deadline_s)
        for round_number in world.loop.rounds():
            at = BlockRound.of(round_number, interval=self.interval)
            groups = yield from draw.groups(world, at)
            counts = yield from self._round(cloud, parts, draw, at, groups)
            members = [client for group in groups for client in group]
            yield from parts.exchange.spread(cloud, at, members, self.deadline_s)
            yield from fine_tune(cloud, parts.exchange, round_number, self.deadline_s)
            world.loop.finish_round(cloud.state["model"], **counts)

    def _round(
        self, cloud: Site, parts: Parts, draw: Draw, at: BlockRound, groups: Sequence[Group]
    ) -> Generator[Event, Any, dict[str, int]]:
        # A generator of its own: what it gathered is forgotten before the model is evaluated.
        members = [client for group in groups for client in group]
        task_of = parts.exchange.asked(cloud, at, members, parts.objective, parts.codec)
        yield from _until_somebody_can_begin(cloud.world, members, task_of)
        gate = RoundGate()
        sizes: dict[Journey, int] = {
            self._sent_out(cloud, group, task_of(group[0]), gate): len(group) for group in groups
        }
        enough = draw.enough(cloud.world)
        wanted = len(sizes) if enough is None else min(len(sizes), enough)
        gathered = yield from cloud.collect(list(sizes), count=wanted, deadline_s=self.deadline_s, gate=gate)
        updates = gathered.arrived
        if self.weighting == "uniform":
            updates = [update._replace(weight=1.0) for update in updates]
        yield from cloud.fold(parts.server, updates, round_number=at.number)
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
            turns = Turns()
            return Trip(cloud.world.env, self.relay(cloud.world, group, task, gate, turns), of=turns)
        return cloud.visit(group[0], task)


def _until_somebody_can_begin(
    world: World, members: Sequence[Client], task_of: Callable[[Client], Task]
) -> Generator[Event, Any, None]:
    """Wait while clients of the block have what they need, but none can be reached and is free; not without hope."""
    while not any(task_of(client).may_begin(client) for client in members):
        if not any(task_of(client).suits(client) and not world.outages.fate(client.attachment) for client in members):
            return
        yield from world.until_changed()
        yield at_the_end_of(world.env, 0.0)  # who is freed in this instant is free
