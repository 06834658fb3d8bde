"""One after the other, in the order of arrival: the accounting of papers that put all clients on one channel (FIFO)."""

from __future__ import annotations

from collections import deque
from typing import Literal

from simpy import Environment, Event

from fedsim.network.disciplines.channel import Channel, Discipline, Flow

__all__ = ["Serial", "SerialChannel"]


class SerialChannel(Channel):
    """Serves whole messages first come, first served, each at its own full rate."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._flows: deque[Flow] = deque()  # the first one has the channel

    def start(self, airtime_s: float) -> Flow:
        """Queue a message behind those that came before."""
        flow = Flow(self.env, airtime_s)
        self._flows.append(flow)
        if len(self._flows) == 1:
            self._serve(flow)
        return flow

    def cancel(self, flow: Flow) -> None:
        """Take a message out of the queue or off the channel."""
        flow.withdraw()
        if flow is self._flows[0]:
            self._next()
        else:
            self._flows.remove(flow)

    def _serve(self, flow: Flow) -> None:
        flow.callbacks.append(self._next)
        flow.begin()

    def _next(self, _: Event | None = None) -> None:
        self._flows.popleft()
        if self._flows:
            self._serve(self._flows[0])


class Serial(Discipline):
    """One message after the other, in the order of arrival."""

    name: Literal["serial"] = "serial"

    @property
    def channel(self) -> type[Channel]:
        """A first-come-first-served channel."""
        return SerialChannel
