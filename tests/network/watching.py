"""A history of what has failed in a world, read off its links and devices after every event."""

from __future__ import annotations

import math

from simpy import Event

from fedsim.protocols.world import World

History = list[tuple[float, frozenset[str]]]
"""When something failed or was back, and what was away from then on: links by their labels, devices by their names."""


def history_of(world: World, until_s: float = math.inf, *, ended: Event | None = None) -> History:
    """Let the world go on until a time, or until something has *ended*, and note every failure and repair."""
    attachments = [client.attachment for client in world.clients]
    history: History = []
    was: frozenset[str] = frozenset()
    while world.env.peek() <= until_s and not (ended is not None and ended.processed):
        world.env.step()
        links = [link.label for link in world.network.links if link.closed]
        now = frozenset([*links, *(attachment.sensor for attachment in attachments if not attachment.on)])
        if now != was:
            history.append((world.env.now, now))
            was = now
    return history


def times_s(history: History, name: str, until_s: float) -> tuple[list[float], list[float]]:
    """How long *name* worked before each failure, and how long each failure lasted that has ended."""
    up_s, down_s, since_s, was_away = [], [], 0.0, False
    for at_s, away in [*history, (until_s, frozenset[str]())]:
        if (name in away) is not was_away and at_s < until_s:
            (down_s if was_away else up_s).append(at_s - since_s)
            since_s, was_away = at_s, not was_away
    return up_s, down_s
