"""Everybody at the full rate at the same time: a link of its own for each client, as many papers assume."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from simpy import Environment

from fedsim.kernel.clock import Alarm
from fedsim.network.disciplines.channel import Channel, Discipline, Flow

__all__ = ["Dedicated", "DedicatedChannel"]


class DedicatedChannel(Channel):
    """Serves every message at once, each at its own full rate; nobody ever waits."""

    __slots__ = ("_flows",)

    def __init__(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> None:
        super().__init__(env, delay_s, carriers)
        self._flows: dict[Flow, None] = {}

    @property
    def flows(self) -> Collection[Flow]:
        """In the order in which they were started."""
        return self._flows.keys()

    def start(self, flow: Flow) -> None:
        """Send a message at once."""
        self._flows[flow] = None
        flow.ticket = 0
        if not self.paused:
            self._run(flow)

    def stop(self, flow: Flow) -> None:
        """Stop sending a message, or forget what is on the way."""
        if not self.holds(flow):
            self._recall(flow)
            return
        self._halt(flow)
        del self._flows[flow]
        flow.ticket = -1

    def adjust(self, flow: Flow, need_s: float, share: float) -> None:
        """Go on with another need."""
        self._halt(flow)
        flow.need_s, flow.share = need_s, share
        if not self.paused:
            self._run(flow)

    def pause(self) -> None:
        """Stop sending."""
        self.paused = True
        for flow in self._flows:
            self._halt(flow)

    def resume(self) -> None:
        """Send again."""
        self.paused = False
        for flow in self._flows:
            self._run(flow)

    def served_s(self, flow: Flow) -> float:
        """All the time that has passed."""
        return self.env.now - flow.since if flow.alarm is not None else 0.0

    def _run(self, flow: Flow) -> None:
        flow.since = self.env.now
        if flow.begun_s is None:
            flow.begun_s = flow.since
        flow.alarm = Alarm(self.env, flow.need_s, self._done, flow)

    def _halt(self, flow: Flow) -> None:
        if flow.alarm is not None:
            flow.alarm.stop()
            flow.book(self.served_s(flow))
            flow.alarm = None

    def _done(self, alarm: Alarm) -> None:
        flow: Flow = alarm.of
        del self._flows[flow]
        flow.alarm = None
        flow.book_all()
        self._send_off(flow)


class Dedicated(Discipline):
    """Everybody at the full rate at the same time; nobody waits."""

    name: Literal["dedicated"] = "dedicated"

    def make_channel(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> Channel:
        """A channel without contention, however many carriers it has."""
        return DedicatedChannel(env, delay_s, carriers)
