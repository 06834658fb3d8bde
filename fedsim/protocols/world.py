"""The world of one protocol on one seed: a record of its parts, and the clients in it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from simpy import Environment, Event, Process

from fedsim.devices.compute import ComputeSettings
from fedsim.errors import UserError
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Trace
from fedsim.learning.learner import Learner, Model
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable
from fedsim.network.hop import Hop
from fedsim.network.network import Network
from fedsim.protocols.run_loop import RunLoop

__all__ = ["Client", "Cloud", "World"]


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
    uplink: tuple[Hop, ...]
    """From the sensor to the cloud."""
    downlink: tuple[Hop, ...]
    """From the cloud to the sensor."""
    trainings: int = 0
    """Local trainings finished so far; each one's batches are drawn from a stream of its own."""
    attempts: int = 0
    """Local trainings begun so far; each one's compute time is drawn from a stream of its own."""
    state: Model = field(default_factory=dict)
    """What it remembers from one training to the next."""
    journey: Process | None = None

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
class World:
    """All that a protocol may touch."""

    env: Environment
    trace: Trace
    streams: Streams
    network: Network
    clients: tuple[Client, ...]
    cloud: Cloud
    model: ModelTable
    training: TrainingSettings
    learner: Learner
    loop: RunLoop
    cancel_late: bool
    """Whether what is late is stopped at the end of its round, or goes on and keeps its device and the air busy."""

    def start(self, client: Client, journey: Generator[Event, Any, Any]) -> Process:
        """Send a client on a journey; it is busy until the journey ends."""
        process = client.journey = self.env.process(journey)

        def ended(_: Event) -> None:
            if client.journey is process:
                client.journey = None  # or the device would keep its last update alive until its next journey

        process.callbacks.append(ended)
        return process

    def compute_seconds(self, client: Client, samples: int) -> float:
        """Simulated seconds that *client* takes to train on *samples* samples."""
        return client.compute.seconds(
            samples,
            lambda: self.model.training_flops_per_sample,
            self.streams("device/compute", client.index),
            self.streams("training/compute", client.index, client.attempts),
        )

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
