"""Centralised training, the yardstick: raw samples cross the network first, then the cloud trains on all of them.

Both are timed and counted. A round is one local training (``training.epochs`` passes) on everybody's samples; the first
one includes the upload. Leaves out sending the finished model back.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal

from simpy import Event

from fedsim.errors import UserError
from fedsim.kernel.trace import Pause
from fedsim.learning.batches import POOL
from fedsim.learning.learner import LocalTraining
from fedsim.learning.objectives.plain import Plain
from fedsim.network.network import TransferLost
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import NobodyLeft
from fedsim.protocols.world import Client, World

__all__ = ["Centralised"]


class Centralised(Protocol):
    """The yardstick without federation: every raw sample is sent to the cloud, which trains on all of them."""

    name: Literal["centralised"] = "centralised"

    def check(self, world: World) -> None:
        """The cloud needs a computer, raw samples a size and no stream, and every sensor coverage."""
        world.cloud_seconds(1, 0)
        if any(client.stream is not None for client in world.clients):
            raise UserError(
                "centralised trains again and again on everything that was ever measured, and with data.stream samples "
                "are used once and forgotten; leave one of them out"
            )
        if any(client.raw_bytes is None for client in world.clients):
            raise UserError("centralised sends raw samples: say how large one is in data.sample_bytes")
        for client in world.clients:
            if not client.attachment.covered:
                raise UserError(
                    f"centralised trains on everybody's samples, and {client.name!r} is out of coverage and can never "
                    "send its own; give it coverage, or leave it out of the topology"
                )
        stop = world.loop.stop
        if stop.rounds is None and stop.sim_time_s is None and stop.target_accuracy is None:
            raise UserError(
                f"centralised sends its samples once and then nothing more, so transfer_bytes={stop.transfer_bytes:g} "
                "may never be reached; give it a stop of its own, such as stop: {rounds: 10}"
            )

    def run(self, world: World) -> Generator[Event, Any, None]:
        """Upload of all raw samples, then rounds of training in the cloud."""
        uploads = [world.start(client, raw_samples_journey(world, client)) for client in world.clients]
        model = world.learner.initial_model()
        samples = sum(client.samples for client in world.clients) * world.training.epochs
        everybody = len(world.clients)
        for round_number in world.loop.rounds():
            if round_number == 1:
                yield from world.gather(uploads)
            yield from world.pause(Pause.SERVER, world.cloud_seconds(samples, round_number))
            task = LocalTraining(round_number, POOL, round_number - 1, Plain())
            trained = world.learner.train(task, model, state={}, further={})
            model = trained.model
            world.loop.finish_round(model, selected=everybody, participants=everybody)


def raw_samples_journey(world: World, client: Client) -> Generator[Any, Any, None]:
    """All raw samples of a client go up to the cloud, again and again until they have arrived.

    Raises `fedsim.protocols.run_loop.NobodyLeft` when they never can, or were lost a thousand times.
    """
    assert client.raw_bytes is not None  # checked before the run
    for _ in range(MOST_UPLOADS):
        try:
            yield world.network.send(client.index, client.uplink, client.raw_bytes)
        except TransferLost:
            yield from world.until_reachable(client)
        else:
            return
    raise NobodyLeft(
        f"the samples of {client.name!r} were lost {MOST_UPLOADS} times: it is never reachable long enough"
    )


MOST_UPLOADS = 1_000
