"""One update's way there and back: down to the sensor, local work, and up again to the cloud.

::

    cloud -> backhaul -> base station -> air -> sensor
                                                local work
    cloud <- backhaul <- base station <- air <- sensor

A protocol is a loop over journeys. A journey runs on the simulated clock; what it brings home is a handle, computed
later or never.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from simpy import Event, Interrupt

from fedsim.kernel.trace import Outcome
from fedsim.learning.learner import Model, Trained
from fedsim.learning.objectives import Objective
from fedsim.network.network import Abandoned
from fedsim.protocols.world import Client, World

__all__ = ["Task", "Update", "journey", "local_work"]


@dataclass(frozen=True, slots=True)
class Task:
    """What the cloud asks of a client in one round."""

    round_number: int
    model: Model
    objective: Objective
    downlink_bytes: float
    uplink_bytes: float


@dataclass(frozen=True, slots=True)
class Update:
    """What a client brings home."""

    client: int
    model: Model
    samples: int


def journey(world: World, client: Client, task: Task) -> Generator[Event, Any, Update]:
    """The model goes down, the client trains, its model comes up.

    Raises `fedsim.kernel.gather.Lost` when a transfer is lost or the journey is given up.
    """
    yield from world.network.carry(client.index, client.downlink, task.downlink_bytes)
    trained = yield from local_work(world, client, task)
    yield from world.network.carry(client.index, client.uplink, task.uplink_bytes)
    return Update(client.index, trained.model, client.samples)


def local_work(world: World, client: Client, task: Task) -> Generator[Event, Any, Trained]:
    """Train on the client's own samples for as long as its device takes.

    Its batches are consumed and its memory advances when the work is finished, whether or not the result arrives; work
    that is given up before consumes nothing.
    """
    start_s = world.env.now
    samples = client.samples * world.training.epochs
    seconds = world.compute_seconds(client, samples)
    client.attempts += 1
    client.working = True
    try:
        yield world.env.timeout(seconds)
    except Interrupt as interrupt:
        world.trace.work.append((client.index, start_s, world.env.now, samples, Outcome.CANCELLED))
        raise Abandoned(*interrupt.args) from None
    finally:
        client.working = False
    world.trace.work.append((client.index, start_s, world.env.now, samples, Outcome.ARRIVED))
    trained = world.learner.train(
        task.model,
        client.index,
        objective=task.objective,
        use=client.trainings,
        round_number=task.round_number,
        state=client.state,
    )
    client.trainings += 1
    client.state = trained.state
    return trained
