"""A history of what has failed in a world, told by nobody who is part of it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from simpy import Event

from fedsim.protocols.world import World

History = list[tuple[float, frozenset[str]]]
"""When something failed or was back, and what was away from then on: links by their labels, devices by their names."""


def watch(world: World) -> History:
    """Note every failure and repair from now on."""
    history: History = []

    def look() -> Generator[Event, Any, None]:
        while True:
            yield world.outages.changed
            links = {link.label for link in world.network.links if link.closed}
            history.append(
                (
                    world.env.now,
                    frozenset(links | {client.name for client in world.clients if not client.attachment.on}),
                )
            )

    world.env.process(look())
    return history


def times_s(history: History, name: str, until_s: float) -> tuple[list[float], list[float]]:
    """How long *name* worked before each failure, and how long each failure lasted that has ended."""
    up_s, down_s, since_s, was_away = [], [], 0.0, False
    for at_s, away in [*history, (until_s, frozenset())]:
        if (name in away) is not was_away and at_s < until_s:
            (down_s if was_away else up_s).append(at_s - since_s)
            since_s, was_away = at_s, not was_away
    return up_s, down_s
