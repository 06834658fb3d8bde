"""Everybody at the full rate at the same time: a link of its own for each client, as many papers assume."""

from __future__ import annotations

from typing import Literal

from fedsim.network.disciplines.channel import Channel, Discipline, Flow

__all__ = ["Dedicated", "DedicatedChannel"]


class DedicatedChannel(Channel):
    """Serves every message at once, each at its own full rate; nobody ever waits."""

    def start(self, airtime_s: float) -> Flow:
        """Send a message at once."""
        flow = Flow(self.env, airtime_s)
        flow.begin()
        return flow

    def cancel(self, flow: Flow) -> None:
        """Stop sending a message."""
        flow.withdraw()


class Dedicated(Discipline):
    """Everybody at the full rate at the same time; nobody waits."""

    name: Literal["dedicated"] = "dedicated"

    @property
    def channel(self) -> type[Channel]:
        """A channel without contention."""
        return DedicatedChannel
