"""Messages that a test sends over a world's network itself, and what became of them."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from simpy import Event, Process
from small_worlds import prepared

from fedsim.kernel.gather import Lost
from fedsim.kernel.trace import Outcome
from fedsim.protocols.world import World


def failing(*scheduled: dict[str, Any], faults: dict[str, Any] | None = None, **changes: Any) -> World:
    """The base world at time zero, in which this will fail; other changes by dotted paths with ``__`` for the dots."""
    paths = {path.replace("__", "."): value for path, value in changes.items()}
    return prepared(paths | {"faults": {"scheduled": list(scheduled)} | (faults or {})})[0]


def send(world: World, *, client: int = 0, up: bool = True, at_s: float = 0.0, size_bytes: float = 1_000.0) -> Process:
    """A process that sends a message over the way of its time, and returns when it was there, or why it was not."""

    def carry() -> Generator[Event, Any, float | Lost]:
        try:
            if at_s:
                yield world.env.timeout(at_s)
            attachment = world.clients[client].attachment
            yield from world.network.carry(client, attachment.uplink if up else attachment.downlink, size_bytes)
        except Lost as lost:
            return lost
        return world.env.now

    return world.env.process(carry())


class Crossed(NamedTuple):
    """A row of the trace."""

    client: int
    link: str
    start_s: float
    end_s: float
    outcome: str
    bytes: float
    again: float
    withdrawn: float
    queued_s: float
    airtime_s: float


def crossed(world: World) -> list[Crossed]:
    """What has crossed a hop, or was lost on it, in the order in which that was known."""
    return [
        Crossed(
            int(row["client"]),
            world.network.links[row["link"]].label,
            float(row["start_s"]),
            float(row["end_s"]),
            Outcome(row["outcome"]).name.lower(),
            *(
                float(row[name])
                for name in ("bytes", "retransmitted_bytes", "withdrawn_bytes", "queued_s", "airtime_s")
            ),
        )
        for row in world.trace.hops.array()
    ]
