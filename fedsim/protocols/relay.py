"""A group in sequence: the model goes from client to client, by way of their base stations, and home from the last one.

::

    cloud -> station -> sensor 1 -> station -> sensor 2 -> ... -> sensor L -> station -> cloud
                        local work             local work         local work

(STP: Zeng et al., HFedMS, IEEE TCC 2023, algorithm 2, lines 5 to 18; FedGSP, DASFAA 2022, algorithm 1, lines 9 to 14.)
The base station of whoever trained last keeps the model until the next one has answered, so that a client that is lost
or late costs its own work only; then the model goes on from where it was, by the nearest node that both stations' ways
to the cloud pass. Leaves out direct radio between sensors.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fedsim.kernel.gather import Gathered, gather, give_up
from fedsim.kernel.trip import Lost
from fedsim.network.attachment import Backbone, between
from fedsim.protocols.journey import Task, Update, journey
from fedsim.protocols.world import Client, World

__all__ = ["Relay", "Turns", "may_begin"]

SERVERS = -1  # who sends what no client sends


def may_begin(client: Client, task: Task) -> bool:
    """Whether *client* can be reached, is free, and has what *task* needs."""
    return client.attachment.reachable and not client.busy and task.suits(client)


@dataclass
class Turns:
    """Whether clients of a round's groups may still begin; once it is over, only who has begun goes on."""

    open: bool = True


@dataclass(frozen=True)
class Relay:
    """How a model passes through a group."""

    on_loss: Literal["skip", "abandon"] = "skip"
    """What becomes of the group when one of its clients is lost or late."""
    turn_s: float | None = None
    """The longest that the group waits for one client."""

    def run(self, world: World, members: Sequence[Client], task: Task, turns: Turns) -> Generator[Any, Any, Update]:
        """The group's update, as from its last client.

        Raises `fedsim.kernel.trip.Lost` when nobody has trained, when the group is abandoned, when the round is over
        before it is the next one's turn, or when the way home loses the model.
        """
        so_far = Update(-1, task.model, 0, clients=0)
        holder: Backbone | None = None  # the base station that has the model; none: the cloud
        for client in members:
            if not turns.open:
                raise Lost("its round is over")
            home = client is members[-1]
            update = yield from self._turn(world, client, replace(task, model=so_far.model), holder, home=home)
            if update is not None:
                so_far = update._replace(samples=so_far.samples + update.samples, clients=so_far.clients + 1)
                holder = client.attachment.backbone
                if home:
                    return so_far
            elif self.on_loss == "abandon":
                raise Lost("a client of the group is lost or late")
        if holder is None or not turns.open:
            raise Lost("no client of the group has trained in time")
        if holder.uplink:
            yield world.network.send(SERVERS, holder.uplink, task.uplink_bytes)
        return so_far

    def _turn(
        self, world: World, client: Client, task: Task, holder: Backbone | None, *, home: bool
    ) -> Generator[Any, Any, Update | None]:
        """What *client* makes of the model; None when it is lost or late.

        The last one sends it all the way home, the others to their base station.
        """
        if not may_begin(client, task):
            return None
        if holder is not None and task.objective.reads_teacher:  # the global model goes along
            task = replace(task, downlink_bytes=task.downlink_bytes + world.model.bytes())
        place = client.attachment
        down = None if holder is None else (*between(holder, place.backbone), place.air_downlink)
        trip = world.start(client, journey(world, client, task, down, None if home else (place.air_uplink,)))
        gathered: Gathered = yield gather(world.env, [trip], deadline_s=self.turn_s)
        if world.cancel_late:
            give_up(gathered.late, "its turn is over")
        return gathered.arrived[0] if gathered.arrived else None
