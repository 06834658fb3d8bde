"""One update's way there and back: down to the sensor, local work, and up again to the cloud.

::

    cloud -> backhaul -> base station -> air -> sensor
                                                local work
    cloud <- backhaul <- base station <- air <- sensor

A protocol is a loop over round trips. A round trip runs on the simulated clock; what it brings home is a handle,
computed later or never.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from simpy.events import NORMAL

from fedsim.data.captures import Capture
from fedsim.kernel.trace import Outcome
from fedsim.kernel.trip import Lost
from fedsim.learning.rules.update import Update
from fedsim.network.hop import Hop
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World

__all__ = ["LocalWork", "round_trip"]

ARRIVED, CANCELLED = Outcome.ARRIVED, Outcome.CANCELLED  # members take long to look up


def round_trip(
    world: World, client: Client, task: Task, down: Sequence[Hop] | None = None, up: Sequence[Hop] | None = None
) -> Generator[Any, Any, Update]:
    """The model goes down, the client trains, its model comes up.

    It comes and goes all the way between the cloud and the client, or by the hops *down* and *up*; what has no bytes is
    not sent at all. Raises `fedsim.kernel.trip.Lost` when a transfer is lost or the trip is given up.
    """
    if task.down.bytes:
        yield world.send(client.index, client.downlink if down is None else down, task.down)
    if not task.suits(client):
        raise Lost("the device has lost meanwhile what the task needs")
    work = LocalWork(world, client, task)
    message = yield work
    samples, size = work.samples, 0.0
    if message.bytes or message.measured is not None:
        transfer = world.send(client.index, client.uplink if up is None else up, message)
        yield transfer
        size = transfer.size_bytes
    way = world.training.gradient_weight(work.steps, task.objective.pull or 0.0)
    about = (samples, work.steps, task.version, size, samples)
    return Update(client.index, message.models, task.model, *about, table=task.table.digest, gradient_weight=way)


class LocalWork:
    """Training on the client's own samples, for as long as its device takes; its value is the message that it makes.

    Where samples arrive by the clock, it first waits until there are enough. Its batches are consumed and its memory
    advances when the work is finished, whether or not the result arrives; work that is given up before consumes
    nothing. One may wait for it as for a `simpy.Event`, but not in conditions.
    """

    __slots__ = (
        "_begun",
        "_ok",
        "_passed",
        "_value",
        "asked_s",
        "callbacks",
        "capture",
        "client",
        "samples",
        "start_s",
        "steps",
        "task",
        "world",
    )

    def __init__(self, world: World, client: Client, task: Task) -> None:
        assert task.table is client.model, f"{client.name!r} has another model than it is asked to train"
        self.world, self.client, self.task = world, client, task
        self.asked_s = self.start_s = world.env.now
        self.samples = client.samples
        self.capture: Capture | None = None
        if client.stream is not None:
            self.capture = client.stream.capture(self.asked_s, task.round_number)
            self.samples = self.capture.samples
            self.start_s += client.stream.wait_s(self.capture, self.asked_s)
        self.callbacks: list[Callable[[Any], None]] = [LocalWork._finish]
        self._ok = True
        effort = task.effort(world, client, self.samples)
        self._passed = task.passes(world, client, self.samples)
        self.steps = task.steps(world, client, self.samples)
        seconds = self.start_s - self.asked_s + world.compute_seconds(client, effort)
        client.attempts += 1
        client.work = self
        self._begun = task.begin(world, client, self.capture)
        world.env.schedule(self, NORMAL, seconds)  # type: ignore[arg-type]

    def give_up(self) -> None:
        """Stop, with nothing learned."""
        self.callbacks = []
        self._note(CANCELLED)
        del self.task, self._begun  # the clock holds on to this until the work would have ended

    def _finish(self) -> None:
        self._note(ARRIVED)
        client, task = self.client, self.task
        self._value = task.learn(self.world, client, self.capture, self._begun)
        if client.stream is not None and self.capture is not None:
            client.stream.consume(self.capture, task.round_number)
        client.trainings += 1

    def _note(self, outcome: Outcome) -> None:
        self.client.work = None
        now_s = self.world.env.now
        begin_s = min(self.start_s, now_s)  # it may be given up while it waits
        self.world.trace.work.append((self.client.index, self.asked_s, begin_s, now_s, self._passed, outcome))
