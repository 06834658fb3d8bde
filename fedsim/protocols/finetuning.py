"""What fine-tuning before an evaluation costs: every client gets what all have in common, and trains on it for a while.

This is the clock's part only. The learner tunes and scores each client's model, whether or not the client was reached
in time. No sample of a stream is used up, and it counts as no training of the client. Leaves out what a client would
send to tell its score.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simpy import Event

from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.outside_rounds import train_outside_rounds
from fedsim.protocols.site import Site
from fedsim.protocols.world import Client, World

__all__ = ["fine_tune"]


def fine_tune(
    site: Site, exchange: Exchange, round_number: int, deadline_s: float | None
) -> Generator[Event, Any, None]:
    """Before an evaluation that says so, all who can be reached and are free fine-tune; wait for them."""
    world = site.world
    epochs = world.loop.timed_epochs(round_number)
    if not epochs:
        return
    trips = [
        world.start(client, _journey(world, client, exchange.fine_tuned_bytes(site, client), epochs, round_number))
        for client in world.asked
        if client.attachment.reachable and not client.busy
    ]
    yield from site.collect(trips, deadline_s=deadline_s)


def _journey(world: World, client: Client, size: float, epochs: int, round_number: int) -> Generator[Any, Any, None]:
    """The model comes down, and the device works on all samples that the client holds."""
    passes = client.samples * epochs
    stream = world.streams("finetune/compute", client.index, round_number)
    yield from train_outside_rounds(world, client, size, passes, passes, stream)
