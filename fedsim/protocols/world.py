"""The world of one protocol on one seed: a record of its parts, and the clients in it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from simpy import Environment, Event

from fedsim.data.dataset import FederatedDataset
from fedsim.devices.compute import ComputeSettings
from fedsim.devices.stream_buffer import StreamBuffer
from fedsim.errors import UserError
from fedsim.kernel.gather import give_up
from fedsim.kernel.streams import Stream, Streams
from fedsim.kernel.trace import Trace
from fedsim.kernel.trip import Trip
from fedsim.learning.learner import Learner, Model, OwnModel
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable
from fedsim.network.attachment import Attachment, Backbone
from fedsim.network.faults.outages import Outages
from fedsim.network.hop import Hop
from fedsim.network.network import Network
from fedsim.network.transfer import Transfer
from fedsim.network.wires import Wires
from fedsim.protocols.message import Message
from fedsim.protocols.run_loop import NobodyLeft, RunLoop
from fedsim.protocols.waiting import Waiting

__all__ = ["SERVERS", "Client", "Cloud", "World"]

SERVERS = -1
"""Who sends what no client sends."""


@dataclass(eq=False, slots=True)
class Client:
    """A sensor that takes part: its place in the network, its device, and what it has done so far."""

    index: int
    """Its canonical position; everything random about it is drawn by this, never by its name."""
    name: str
    samples: int
    """Training samples that it holds."""
    raw_bytes: float | None
    """Bytes of all its raw samples and labels on the wire; None when the data set does not say."""
    compute: ComputeSettings
    model: ModelTable
    """Of the model that it has: the scenario's, or its device class's own."""
    attachment: Attachment
    """How it is attached to the network."""
    stream: StreamBuffer | None = None
    """Its samples as they come and go; None when it keeps all of its own."""
    trainings: int = 0
    """Local trainings finished so far; each one's batches are drawn from a stream of its own."""
    attempts: int = 0
    """Local trainings begun so far; each one's compute time is drawn from a stream of its own."""
    journey: Trip | None = None
    work: object | None = None
    """The local training that it does now."""
    known_work: tuple[float, float] | None = None
    """The samples and seconds of its last training, when the same work always takes it the same time."""
    _kept: dict[str, Any] | None = field(default=None, init=False)

    @property
    def kept(self) -> dict[str, Any]:
        """What it keeps from one round to the next, by who keeps it: its "objective", an exchange, a codec.

        Parts of its model that nobody else gets are "private". Who has never been asked has no dictionary: of hundreds
        of thousands of clients most have not.
        """
        if self._kept is None:
            self._kept = {}
        return self._kept

    @property
    def uplink(self) -> tuple[Hop, ...]:
        """The hops from the sensor to the server, as they are used now."""
        return self.attachment.uplink

    @property
    def downlink(self) -> tuple[Hop, ...]:
        """The hops from the server to the sensor, as they are used now."""
        return self.attachment.downlink

    @property
    def busy(self) -> bool:
        """Whether its work or its transfers are still going on: a device trains for one journey at a time."""
        return self.journey is not None and self.journey.is_alive


@dataclass(frozen=True, slots=True)
class Cloud:
    """The cloud's computer."""

    compute: ComputeSettings | None
    aggregation_s: float


@dataclass(eq=False, slots=True)
class World(Waiting):
    """All that a protocol may touch."""

    env: Environment
    trace: Trace
    streams: Streams
    network: Network
    wires: Wires
    clients: tuple[Client, ...]
    cloud: Cloud
    dataset: FederatedDataset
    models: tuple[ModelTable, ...]
    """What clients train one after the other: as a rule, the scenario's model."""
    training: TrainingSettings
    learner: Learner
    loop: RunLoop
    outages: Outages
    """What fails and comes back."""
    forgetful: bool
    """Whether a device that fails forgets what it remembers from one training to the next."""
    cancel_late: bool
    """Whether what is late is stopped at the end of its round, or goes on and keeps its device and the air busy."""
    model: ModelTable = field(init=False)
    """That of `models` which they train now; a client's own is ``client.model``."""
    initial_model: Callable[[Client], Model] | None = None
    """What each client begins with, where it has a model of its own all along; None: as the protocol's models begin."""
    newcomers: int = 0
    """How many clients, the last ones, are asked in no round."""
    compute_times_checked: bool = False
    """Whether each client is known to have one, which all protocols on one seed have in common."""
    _before_change: tuple[int, ModelTable] = field(init=False)
    """How many rounds were finished when the model last changed, and the model before."""
    _at_the_end_of_a_journey: Callable[[Trip], None] = field(init=False)

    def __post_init__(self) -> None:
        self.model = self.models[0]
        self._before_change = 0, self.model
        self._at_the_end_of_a_journey = self._journey_ended  # once, not for each of a million journeys
        self.outages.on_device_failure = self._device_failed
        self.loop.own_models = self._own_models

    @property
    def asked(self) -> Sequence[Client]:
        """The clients that rounds may ask."""
        return self.clients[: len(self.clients) - self.newcomers] if self.newcomers else self.clients

    def change_model(self, table: ModelTable) -> None:
        """From now on all clients train the model of *table*, and forget what they keep of the one before.

        That one is evaluated now, if it was not yet; work on it that is still under way is given up.
        """
        self.loop.conclude()  # while the learner still knows that model
        give_up([client.journey for client in self.clients], "the model has changed")
        self._before_change = len(self.loop.rounds_done), self.model
        self.model = table
        self.learner.change_model(table)
        for client in self.clients:
            client.model, client.known_work = table, None
            client.kept.clear()

    @property
    def finished_model(self) -> ModelTable:
        """Of the model at the end of the last finished round."""
        rounds, before = self._before_change
        return self.model if len(self.loop.rounds_done) > rounds else before

    def _own_models(self) -> list[OwnModel]:
        """Of each client: as it began, but for what was learned together, and for what it alone has learned."""
        if self.initial_model is not None:
            return [OwnModel(client.index, client.model.digest, self.own_model(client)) for client in self.asked]
        tables = {client.model.digest: client.model for client in self.clients}
        together = {self.model.digest: self.loop.model, **self.loop.further}
        begun = {
            name: {**self.learner.initial_model(table), **together.get(name, {})} for name, table in tables.items()
        }
        return [
            OwnModel(client.index, name, {**begun[name], **client.kept.get("private", {})})
            for client in self.asked
            for name in [client.model.digest]
        ]

    def own_model(self, client: Client) -> Model:
        """The model that *client* has, where each has one all along: as it begins, but for what it has kept."""
        kept: Model = client.kept.get("private", {})
        assert self.initial_model is not None
        return kept if kept.keys() == set(client.model.parts) else {**self.initial_model(client), **kept}

    def _device_failed(self, attachment: Attachment) -> None:
        """Local work is given up; what is on the air is the network's affair."""
        client = self.clients[attachment.client]
        if client.work is not None and client.journey is not None:
            give_up([client.journey], "the device failed")
        if self.forgetful:
            client.kept.clear()
            if client.stream is not None:
                client.stream.forget(self.env.now)

    def send(self, client: int, route: Sequence[Hop], message: Message, of: Backbone | None = None) -> Transfer:
        """Send *message* for a client, or `SERVERS`, over the hops of *route*; may be waited for.

        Where its size is measured, it is asked for now. A message between the cloud and a station is *of* that one's
        backbone: the trace keeps it.
        """
        size = message.bytes
        if message.measured is not None:
            size += self.learner.value(message.measured)
        transfer = self.network.send(client, route, size)
        if of is not None:
            self.trace.station_messages.append((transfer.number, of.cell))
        return transfer

    def start(self, client: Client, journey: Generator[Event, Any, Any]) -> Trip:
        """Send a client on a journey, now; it is busy until the journey ends."""
        trip = client.journey = Trip(self.env, journey, of=client)
        if trip.callbacks is None:
            client.journey = None
        else:
            trip.callbacks.append(self._at_the_end_of_a_journey)
        return trip

    def _journey_ended(self, trip: Trip) -> None:
        client: Client = trip.of
        if client.journey is trip:
            client.journey = None  # or the device would keep its last update alive until its next journey
        if self.outages.changed.callbacks:
            self.outages.tell()

    def until_reachable(self, client: Client) -> Generator[Event, Any, None]:
        """Wait while *client* cannot be reached. Raises `NobodyLeft` when it never can be again."""
        while not client.attachment.reachable:
            if fate := self.outages.fate(client.attachment):
                raise NobodyLeft(f"{client.name!r} is needed, and can never be reached again ({fate})")
            yield from self.until_changed()

    def held_back(self, client: Client) -> int:
        """Training samples that *client* holds back, and does not train on."""
        held = self.dataset.held_back_samples
        return 0 if held is None else int(held[client.index])

    def check_compute_times(self) -> None:
        """Raise `UserError` unless every client has one; looks at the clients once."""
        if not self.compute_times_checked:
            for client in self.clients:
                self.compute_seconds(client, client.samples)
            self.compute_times_checked = True

    def compute_seconds(self, client: Client, samples: float, stream: Stream | None = None) -> float:
        """Simulated seconds that *client* takes to train on *samples* samples, or for other work as large.

        What is new in each training is drawn from *stream*; None: from that of the client's next training.
        """
        if client.known_work is not None and client.known_work[0] == samples:
            return client.known_work[1]
        seconds = client.compute.seconds(
            samples,
            lambda: client.model.training_flops_per_sample,
            self.streams("device/compute", client.index),
            stream or self.streams("training/compute", client.index, client.attempts),
        )
        if not client.compute.varies:
            client.known_work = (samples, seconds)
        return seconds

    def cloud_seconds(self, samples: int, use: int) -> float:
        """Simulated seconds that the cloud takes to train on *samples* samples, for the *use*-th time.

        Raises `UserError` when the scenario says nothing of the cloud's computer.
        """
        if self.cloud.compute is None:
            raise UserError("this protocol trains in the cloud: say how fast it computes in devices.cloud.compute")
        return self.cloud.compute.seconds(
            samples,
            lambda: self.model.training_flops_per_sample,
            self.streams("cloud/compute"),
            self.streams("cloud/training/compute", 0, use),
        )
