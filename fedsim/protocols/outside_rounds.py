"""Work of a client that is no training in a round: something comes down, and its device computes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from fedsim.kernel.streams import Stream
from fedsim.kernel.trace import Outcome
from fedsim.kernel.trip import Abandoned
from fedsim.protocols.message import Message
from fedsim.protocols.world import Client, World

__all__ = ["train_outside_rounds"]


def train_outside_rounds(
    world: World, client: Client, size: float, effort: float, passes: int, stream: Stream
) -> Generator[Any, Any, None]:
    """So many bytes come down, and the device works, as long as training on *effort* samples takes it.

    *passes* samples pass through the model. What varies is drawn from *stream*. Raises `Lost` when the message is lost,
    and `Abandoned` when the work is given up.
    """
    if size:
        yield world.send(client.index, client.downlink, Message({}, size))
    begin_s, seconds = world.env.now, world.compute_seconds(client, effort, stream)
    client.work = passes  # so that a device that fails meanwhile gives it up
    try:
        yield world.env.timeout(seconds)
    except Abandoned:
        _note(world, client, begin_s, passes, Outcome.CANCELLED)
        raise
    _note(world, client, begin_s, passes, Outcome.ARRIVED)


def _note(world: World, client: Client, begin_s: float, passes: int, outcome: Outcome) -> None:
    client.work = None
    world.trace.work.append((client.index, begin_s, begin_s, world.env.now, passes, outcome))
