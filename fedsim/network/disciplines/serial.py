"""One after the other, in the order of arrival: the accounting of papers that put all clients on one channel (FIFO).

When a message is offered it is known when it will have been sent: when the one before it has been, plus its own
time. So each is planned at once (Lindley, Proceedings of the Cambridge Philosophical Society 48, 1952), and one alarm
for the next arrival is all that a channel keeps on the clock. Outages, messages that are given up and new rates change
the plan.

Where there are several carriers it is another channel: `fedsim.network.disciplines.multi_server`.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Literal

from simpy import Environment

from fedsim.kernel.clock import Alarm
from fedsim.network.disciplines.channel import Channel, Discipline, Flow, FlowQueue
from fedsim.network.disciplines.multi_server import MultiServerChannel

__all__ = ["Serial", "SerialChannel"]


class SerialChannel(Channel):
    """Serves whole messages first come, first served, each at its own full rate."""

    __slots__ = ("_alarm", "_busy_since_s", "_free_s", "_queue", "_replanning", "_work_s")

    def __init__(self, env: Environment, delay_s: float = 0.0) -> None:
        super().__init__(env, delay_s)
        self._queue = FlowQueue()
        """Those that have not arrived, in the order in which they are sent; ``since`` says from when on."""
        self._free_s = env.now
        """When all of them will have been sent."""
        self._busy_since_s = env.now
        self._work_s = 0.0
        """What is sent from then on, one after the other: a sum of its own, as late times round more."""
        self._alarm: Alarm | None = None
        """Rings when the first one arrives, or before."""
        self._replanning: Alarm | None = None

    @property
    def flows(self) -> Collection[Flow]:
        """In the order in which they are served."""
        return [flow for flow in self._queue if self.holds(flow)]

    @property
    def sent(self) -> Collection[Flow]:
        """Those at the head of the queue that are on the way."""
        return [flow for flow in self._queue if not self.holds(flow)]

    def start(self, flow: Flow) -> None:
        """Queue a message behind those that came before."""
        flow.ticket = 0
        self._queue.append(flow)
        if self.paused or self._replanning is not None:
            flow.since = flow.due_s = math.inf
            return
        now_s = self.env.now
        if self._free_s < now_s:
            self._become_free(now_s)
        self._plan(flow)
        if self._alarm is None:
            self._alarm = Alarm(self.env, flow.due_s + self.delay_s - now_s, self._ring, flow)

    def holds(self, flow: Flow) -> bool:
        """Whether it is in the queue or being sent."""
        if flow.ticket >= 0 and flow.due_s <= self.env.now:
            flow.book_all()
        return flow.ticket >= 0

    def served_s(self, flow: Flow) -> float:
        """All the time since its turn came."""
        return max(0.0, self.env.now - flow.since)

    def stop(self, flow: Flow) -> None:
        """Take a message out of the queue, off the channel, or off the way to its other end."""
        self._unplan(flow)
        self._queue.remove(flow)
        flow.ticket = -1
        self._replan_soon()

    def adjust(self, flow: Flow, need_s: float, share: float) -> None:
        """Go on with another need, at the same place in the queue."""
        self._unplan(flow)
        flow.need_s, flow.share = need_s, share
        self._replan_soon()

    def pause(self) -> None:
        """Stop sending."""
        self.paused = True
        for flow in self._queue:
            self._unplan(flow)

    def resume(self) -> None:
        """Go on with the first message."""
        self.paused = False
        self._replan_soon()

    def _become_free(self, at_s: float) -> None:
        self._free_s = self._busy_since_s = at_s
        self._work_s = 0.0

    def _plan(self, flow: Flow) -> None:
        """Send it when all that is planned has been sent."""
        flow.since = self._free_s
        if flow.begun_s is None:
            flow.begun_s = flow.since
        self._work_s += flow.need_s
        self._free_s = flow.due_s = self._busy_since_s + self._work_s

    def _unplan(self, flow: Flow) -> None:
        """Book what *flow* has been given; if that is not all of it, plan nothing more."""
        if self.holds(flow):
            flow.book(self.served_s(flow))
            flow.since = flow.due_s = math.inf
            if flow.begun_s is not None and flow.begun_s > self.env.now:
                flow.begun_s = None

    def _replan_soon(self) -> None:
        """Plan anew in this instant, but only once: many may leave the queue together."""
        if self._replanning is None:
            self._replanning = Alarm(self.env, 0.0, self._replan)

    def _replan(self, _: Alarm) -> None:
        self._replanning = None
        now_s = self.env.now
        self._become_free(now_s)
        for flow in self._queue if not self.paused else ():
            self._unplan(flow)
            if self.holds(flow):
                self._plan(flow)
        if self._alarm is not None:
            self._alarm.stop()
        self._set_alarm(now_s)

    def _set_alarm(self, now_s: float) -> None:
        """Wait for the next arrival, if one is planned."""
        self._alarm = None
        flow = self._queue.first
        if flow is not None and flow.due_s < math.inf:
            self._alarm = Alarm(self.env, max(0.0, flow.due_s + self.delay_s - now_s), self._ring, flow)

    def _ring(self, alarm: Alarm) -> None:
        queue = self._queue
        flow = queue.first
        if flow is None or flow is not alarm.of or flow.due_s == math.inf:  # the plan has changed since
            self._set_alarm(self.env.now)
            return
        due_s = flow.due_s
        while (flow := queue.first) is not None and flow.due_s <= due_s:  # at an infinite rate many arrive together
            queue.remove(flow)
            if flow.ticket >= 0:
                flow.book_all()
            flow.arrived()
        self._set_alarm(self.env.now)


class Serial(Discipline):
    """One message after the other, in the order of arrival."""

    name: Literal["serial"] = "serial"

    def make_channel(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> Channel:
        """A first-come-first-served channel; each message is sent on one carrier."""
        return SerialChannel(env, delay_s) if carriers == 1 else MultiServerChannel(env, delay_s, carriers)
