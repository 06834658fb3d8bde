"""Flows to put on channels, which note when they arrive, and the channels to put them on."""

from __future__ import annotations

import math
from collections.abc import Callable

from simpy import Environment

from fedsim import registry
from fedsim.network.disciplines.channel import Channel, Flow

CHANNELS: dict[str, Callable[..., Channel]] = {
    name: registry.load("disciplines", name)().make_channel for name in registry.names("disciplines")
}
"""By the discipline's name; each takes an environment, a delay and a number of carriers."""


class Note(Flow):
    """A message that is offered in the instant in which it is made, and notes when it arrives."""

    def __init__(self, env: Environment, airtime_s: float, *, share: float = 1.0, weight: float = 1.0) -> None:
        super().__init__(share=share, weight=weight)
        self.env = env
        self.arrived_s = math.nan
        self.also: Callable[[], None] = lambda: None
        """What else happens when it arrives."""
        self.offer(airtime_s, env.now)

    def arrived(self) -> None:
        assert math.isnan(self.arrived_s), "arrived twice"
        self.arrived_s = self.env.now
        self.also()


def put(channel: Channel, airtime_s: float, *, share: float = 1.0, weight: float = 1.0) -> Note:
    """Start a message now."""
    flow = Note(channel.env, airtime_s, share=share, weight=weight)
    channel.start(flow)
    return flow


def at(env: Environment, time_s: float) -> None:
    """Let everything happen that happens before *time_s*, and nothing of that instant."""
    if time_s > env.now:
        env.run(until=time_s)
