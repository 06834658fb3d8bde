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
from dataclasses import dataclass
from typing import Any, Literal

from fedsim.kernel.gather import give_up
from fedsim.kernel.trace import NOBODY
from fedsim.kernel.trip import Lost
from fedsim.learning.rules.update import Update
from fedsim.network.attachment import Backbone, between
from fedsim.protocols.message import Message
from fedsim.protocols.round_trip import round_trip
from fedsim.protocols.site import RoundGate
from fedsim.protocols.task import GLOBAL, Task
from fedsim.protocols.world import SERVERS, Client, World
from fedsim.settings import Positive, Settings

__all__ = ["Relay", "Turns"]


@dataclass(slots=True)
class Turns:
    """How far a group has come."""

    closed_by: int = NOBODY
    """Whom it has waited for last (`fedsim.protocols.world.World.closed_by`); who cannot begin is not waited for."""


class Relay(Settings):
    """How a model passes through a group."""

    on_loss: Literal["skip", "abandon"] = "skip"
    """What becomes of a group when one of its clients is lost or late: it goes on without that client's work, from the
    base station that has the model, or it is abandoned."""
    turn_s: Positive | None = None
    """A client is late, and its group goes on without it, so many seconds after it was its turn."""

    def relay(
        self, world: World, members: Sequence[Client], task: Task, gate: RoundGate, turns: Turns
    ) -> Generator[Any, Any, Update]:
        """The group's update, as from its last client; its *turns* are noted.

        Raises `fedsim.kernel.trip.Lost` when nobody has trained, when the group is abandoned, when the round is over
        before it is the next one's turn, or when the way home loses the model.
        """
        so_far: Update | None = None
        holder: Backbone | None = None  # the base station that has the model; none: the cloud
        for client in members:
            if not gate.open:
                raise Lost("its round is over")
            home = client is members[-1]
            update = yield from self._turn(world, client, task, turns, so_far, holder, home=home)
            if update is not None:
                so_far = update if so_far is None else _joined(so_far, update)
                holder = client.attachment.backbone
                if home:
                    return so_far
            elif self.on_loss == "abandon":
                raise Lost("a client of the group is lost or late")
        if holder is None or so_far is None or not gate.open:
            raise Lost("no client of the group has trained in time")
        if holder.uplink:
            yield world.send(SERVERS, holder.uplink, Message(so_far.models, so_far.bytes), of=holder)
        return so_far

    def _turn(
        self,
        world: World,
        client: Client,
        task: Task,
        turns: Turns,
        so_far: Update | None,
        holder: Backbone | None,
        *,
        home: bool,
    ) -> Generator[Any, Any, Update | None]:
        """What *client* makes of the model; None when it is lost or late.

        The last one sends it all the way home, the others to their base station.
        """
        if not task.may_begin(client):
            return None
        if so_far is not None:
            with_it = GLOBAL in task.objective.receives  # it is no longer the one to begin with
            task = task.handed_on(so_far, task.table.bytes() if with_it else 0.0)
        place = client.attachment
        down = None if holder is None else (*between(holder, place.backbone), place.air_downlink)
        trip = world.start(client, round_trip(world, client, task, down, None if home else (place.air_uplink,)))
        gathered = yield from world.gather([trip], deadline_s=self.turn_s, at=place.backbone)
        turns.closed_by = world.closed_by(gathered)
        if world.cancel_late:
            give_up(gathered.late, "its turn is over")
        return gathered.arrived[0] if gathered.arrived else None


def _joined(so_far: Update, update: Update) -> Update:
    """The update of a chain, whose last client has sent *update*."""
    return update._replace(
        base=so_far.base,
        samples=so_far.samples + update.samples,
        steps=so_far.steps + update.steps,
        weight=so_far.weight + update.weight,
        clients=so_far.clients + 1,
        gradient_weight=so_far.gradient_weight + update.gradient_weight,
    )
