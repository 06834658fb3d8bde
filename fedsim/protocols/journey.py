"""One update's way there and back: down to the sensor, local work, and up again to the cloud.

::

    cloud -> backhaul -> base station -> air -> sensor
                                                local work
    cloud <- backhaul <- base station <- air <- sensor

A protocol is a loop over journeys. A journey runs on the simulated clock; what it brings home is a handle, computed
later or never.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from simpy.events import NORMAL

from fedsim.data.stream.captures import Capture
from fedsim.kernel.trace import Outcome
from fedsim.learning.learner import Model
from fedsim.learning.objectives import Objective
from fedsim.network.hop import Hop
from fedsim.protocols.world import Client, World

__all__ = ["LocalWork", "Task", "Update", "journey"]

ARRIVED, CANCELLED = Outcome.ARRIVED, Outcome.CANCELLED  # members take long to look up


@dataclass(frozen=True, slots=True)
class Task:
    """What the cloud asks of a client in one round: to train the model that it is sent."""

    round_number: int
    model: Model
    """What travels."""
    objective: Objective
    downlink_bytes: float
    uplink_bytes: float
    teacher: Model = field(default_factory=dict)
    """The whole model at the round's beginning, for objectives that look at it."""

    def suits(self, client: Client) -> bool:
        """Whether *client* has what it needs beside what it is sent."""
        return True

    def passes(self, world: World, client: Client, samples: int) -> int:
        """Samples that pass through the model, *samples* new ones among them: each once in every epoch."""
        return samples * world.training.epochs

    def effort(self, world: World, client: Client, samples: int) -> float:
        """How many samples the device could train on once with as many operations as this takes."""
        return samples * world.training.epochs

    def learn(self, world: World, client: Client, capture: Capture | None) -> Model:
        """What comes back of the model. Called once, when the device has done the work."""
        trained = world.learner.train(
            self.model,
            client.index,
            objective=self.objective,
            use=client.trainings,
            round_number=self.round_number,
            state=client.state,
            capture=capture,
            teacher=self.teacher,
        )
        client.state = trained.state
        return trained.model


class Update(NamedTuple):
    """What comes home."""

    client: int
    """Who sent it; of a group that trains in sequence, the last one."""
    model: Model
    samples: int
    """That it was trained on, each counted once."""
    clients: int = 1
    """How many have trained it."""


def journey(
    world: World, client: Client, task: Task, down: Sequence[Hop] | None = None, up: Sequence[Hop] | None = None
) -> Generator[Any, Any, Update]:
    """The model goes down, the client trains, its model comes up.

    It comes and goes all the way between the cloud and the client, or by the hops *down* and *up*. Raises
    `fedsim.kernel.trip.Lost` when a transfer is lost or the journey is given up.
    """
    yield world.network.send(client.index, client.downlink if down is None else down, task.downlink_bytes)
    work = LocalWork(world, client, task)
    model = yield work
    yield world.network.send(client.index, client.uplink if up is None else up, task.uplink_bytes)
    return Update(client.index, model, work.samples)


class LocalWork:
    """Training on the client's own samples, for as long as its device takes; its value is the trained model.

    Where samples arrive by the clock, it first waits until there are enough. Its batches are consumed and its memory
    advances when the work is finished, whether or not the result arrives; work that is given up before consumes
    nothing. One may wait for it as for a `simpy.Event`, but not in conditions.
    """

    __slots__ = ("_ok", "_passed", "_value", "callbacks", "capture", "client", "samples", "start_s", "task", "world")

    def __init__(self, world: World, client: Client, task: Task) -> None:
        self.world, self.client, self.task = world, client, task
        self.start_s = world.env.now
        self.samples = client.samples
        self.capture: Capture | None = None
        if client.stream is not None:
            self.capture = client.stream.capture(self.start_s, task.round_number)
            self.samples = self.capture.samples
            self.start_s += client.stream.wait_s(self.capture, self.start_s)
        self.callbacks: list[Callable[[Any], None]] = [LocalWork._finish]
        self._ok = True
        effort = task.effort(world, client, self.samples)
        self._passed = task.passes(world, client, self.samples)
        seconds = self.start_s - world.env.now + world.compute_seconds(client, effort)
        client.attempts += 1
        client.work = self
        world.env.schedule(self, NORMAL, seconds)  # type: ignore[arg-type]

    def give_up(self) -> None:
        """Stop, with nothing learned."""
        self.callbacks = []
        self._note(CANCELLED)
        del self.task  # the clock holds on to this until the work would have ended

    def _finish(self) -> None:
        self._note(ARRIVED)
        client, task = self.client, self.task
        self._value = task.learn(self.world, client, self.capture)
        if client.stream is not None and self.capture is not None:
            client.stream.consume(self.capture, task.round_number)
        client.trainings += 1

    def _note(self, outcome: Outcome) -> None:
        self.client.work = None
        now_s = self.world.env.now
        begin_s = min(self.start_s, now_s)  # it may be given up while it waits
        self.world.trace.work.append((self.client.index, begin_s, now_s, self._passed, outcome))
