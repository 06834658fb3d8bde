"""Where updates come together: the cloud, an edge server or a base station.

A site asks its clients, waits for what comes home, and makes its next model of it. Its state is handles, so it needs no
code of its own to be resumed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from simpy import Event

from fedsim.kernel.gather import Gathered, Journey, give_up
from fedsim.kernel.trace import NOBODY, Pause
from fedsim.kernel.trip import Lost, Trip
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.graph import Handle
from fedsim.learning.learner import Model
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update
from fedsim.models.table import ModelTable
from fedsim.network.attachment import Backbone, between
from fedsim.protocols.message import Message
from fedsim.protocols.round_trip import round_trip
from fedsim.protocols.task import GLOBAL, Task
from fedsim.protocols.world import SERVERS, Client, World

__all__ = ["RoundGate", "Site"]


@dataclass
class RoundGate:
    """Whether clients may still begin; once a round is over, only who has begun goes on."""

    open: bool = True


class Site:
    """The cloud, or the node that *backbone* leads from."""

    def __init__(
        self,
        world: World,
        backbone: Backbone | None = None,
        state: State | None = None,
        table: ModelTable | None = None,
        rule: ServerRule | None = None,
    ) -> None:
        """It begins with the *state*, or with the initial model of *table*; that is as a rule the scenario's model.

        What a *rule* has beside the model before the first round, and sends beside each message, is there with it.
        """
        self.world = world
        self.backbone = backbone
        self.table = table or world.model
        self.state: State = {"model": world.learner.initial_model(self.table)} if state is None else state
        self._rule = rule
        if rule is not None:
            self.state = rule.begin(world.learner, self.state, self.table)
        self.closed_by = NOBODY
        """Whom it has waited for last (`fedsim.protocols.world.World.closed_by`)."""
        self.version = 0
        """How many models it has made."""
        self._report_beside = 0.0
        """Bytes beside its report, as the cloud's rule has it."""
        self._begin(0)

    def _begin(self, version: int) -> None:
        """From now on it counts what it will report, as made from the model that it has, the cloud's *version*."""
        self._base: Model = {} if self.backbone is None else self.state["model"]
        self._base_version, self._steps, self._gradient_weight = version, 0, 0.0
        self._trained: dict[int, tuple[int, int]] = {}  # by sender: clients and samples

    @property
    def base(self) -> Model:
        """The model that it has last received; empty for the cloud."""
        return self._base

    def change_model(self, table: ModelTable, state: State) -> None:
        """From now on it is about the model of *table*, and has the *state*."""
        self.table, self.state = table, state

    @property
    def beside(self) -> tuple[float, float]:
        """Bytes (down, up) that its rule sends beside the whole model and beside each update."""
        return self._rule.bytes_beside(self.table) if self._rule else (0.0, 0.0)

    @property
    def has_trained(self) -> bool:
        """Whether a client's update has gone into its model since it was received."""
        return bool(self._trained)

    def receive(self, cloud: Site) -> Generator[Any, Any, None]:
        """The model of *cloud* comes down to this site, which goes on from it; what else its rule remembers stays."""
        assert self.backbone is not None, "the cloud is at the top"
        model, version = cloud.state["model"], cloud.version
        beside, self._report_beside = cloud.beside
        message = Message({"model": model}, self.table.bytes() + beside)
        yield self.world.send(SERVERS, self.backbone.downlink, message, of=self.backbone)
        self.state = {**self.state, "model": model}
        self._begin(version)

    def task(
        self,
        number: int,
        objective: Objective,
        codec: Codec,
        *,
        part: str | None = None,
        kind: type[Task] = Task,
        **fields: Any,
    ) -> Task:
        """What clients are asked in round *number*: to train all of the site's model, or one *part*.

        What the objective receives and sends travels beside it. The global model itself needs no sending where it is
        the one to begin with. *fields* are those of another *kind* of task.
        """
        whole, table = self.state["model"], self.table
        further = {name: whole if name == GLOBAL else self.state.get(name, {}) for name in objective.receives}
        begin = whole if part is None else {name: handle for name, handle in whole.items() if name == part}
        beside_down, beside_up = self._rule.bytes_beside(table, part) if self._rule else (0.0, 0.0)
        beside_down += sum(objective.bytes_of(name, table) for name in objective.receives if name != GLOBAL)
        beside_up += sum(objective.bytes_of(name, table) for name in (*objective.sends, *objective.tells))
        down = Message({**further, "model": begin}, table.bytes(part) + beside_down)
        up_bytes = codec.size(table, part) + beside_up
        return kind(number, self.version, down, objective, codec, up_bytes, table, **fields)

    def visit(self, client: Client, task: Task) -> Trip:
        """Send *client* on a round trip from here and back; it has failed at once where the client cannot begin."""
        if client.busy or not self.reaches(client) or not task.suits(client):
            return Trip(self.world.env, _not_begun(client), of=client)
        down, up = self.way(client)
        return self.world.start(client, round_trip(self.world, client, task, down, up))

    def reaches(self, client: Client) -> bool:
        """Whether *client* can be reached from here: a station needs no way to the cloud for that."""
        place = client.attachment
        if self.backbone is None:
            return place.reachable
        own = place.backbone is self.backbone
        return place.on_air and (own or not (place.backbone.closed or self.backbone.closed))

    def way(self, client: Client) -> tuple[Sequence[Any] | None, Sequence[Any] | None]:
        """The hops down to *client* and back up; None: all the way from the cloud."""
        if self.backbone is None:
            return None, None
        place = client.attachment
        if place.backbone is self.backbone:
            return (place.air_downlink,), (place.air_uplink,)
        down = (*between(self.backbone, place.backbone), place.air_downlink)
        return down, (place.air_uplink, *between(place.backbone, self.backbone))

    def collect(
        self,
        trips: Sequence[Journey],
        *,
        count: int | None = None,
        deadline_s: float | None = None,
        gate: RoundGate | None = None,
    ) -> Generator[Event, Any, Gathered]:
        """What has come home once *count* trips have arrived (None: all), none is under way, or time is up.

        Then the *gate* closes, and what is late is given up, if the scenario says so, before this goes on.
        """
        world, at = self.world, self.backbone
        gathered = yield from world.gather(trips, count=count, deadline_s=deadline_s, at=at)
        self.closed_by = world.closed_by(gathered)
        if gate is not None:
            gate.open = False
        if world.cancel_late:
            give_up(gathered.late, "its round is over")
            yield world.env.timeout(0)  # what is late has stopped before the round ends
        return gathered

    def fold(
        self, rule: ServerRule | None, updates: Sequence[Update], *, round_number: int
    ) -> Generator[Event, Any, None]:
        """Make the next model of *updates*, if there are any; it takes a while.

        Without a *rule* nobody asks for that model: a later one is made of all that came before.
        """
        if not updates:
            return
        yield from self.world.pause(Pause.SERVER, self.world.cloud.aggregation_s, self.backbone)
        if rule is not None and self.state["model"]:  # without learning there is nothing to be made
            world = self.world
            about = (self.table, len(world.asked), world.dataset.classes)
            self.state = rule.apply(world.learner, self.state, updates, Aggregation(round_number, *about))
        self.version += 1
        if self.backbone is None:
            return  # nobody is told
        self._steps += sum(update.steps for update in updates)
        weights = sum(update.weight for update in updates)
        self._gradient_weight += sum(update.weight / weights * update.gradient_weight for update in updates)
        self._trained |= {update.sender: (update.clients, update.samples) for update in updates}

    def report_up(
        self, *, up_bytes: float | None = None, measured: Handle | None = None, samples: int | None = None
    ) -> Generator[Any, Any, Update]:
        """The site's model goes up to the cloud, as one update of all who have trained it since it was received.

        It has *up_bytes* (None: those of its numbers in float32), and as many more as are *measured*. It counts as made
        from so many *samples*; None: those that its clients have, each client's once. Raises `Lost` when nobody has
        trained, or when the message is lost.
        """
        assert self.backbone is not None, "the cloud is at the top"
        if not self._trained:
            raise Lost("no client of the site has trained")
        size = (self.table.bytes() if up_bytes is None else up_bytes) + self._report_beside
        message = Message({"model": self.state["model"]}, size, measured)
        transfer = self.world.send(SERVERS, self.backbone.uplink, message, of=self.backbone)
        yield transfer
        sender, (clients, held) = min(self._trained), map(sum, zip(*self._trained.values(), strict=True))
        total = held if samples is None else samples
        about = (self._base, total, self._steps, self._base_version, transfer.size_bytes)
        way = self._gradient_weight
        return Update(sender, message.models, *about, weight=total, clients=clients, gradient_weight=way)


def _not_begun(client: Client) -> Generator[Event, Any, Update]:
    yield from ()
    raise Lost(f"{client.name!r} cannot begin")
