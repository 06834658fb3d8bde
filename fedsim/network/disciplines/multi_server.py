"""One after the other on each of several carriers: who is first in the queue has the next carrier that is free.

With exponential airtimes and Poisson arrivals that is Erlang's M/M/c. One carrier has a channel of its own, which plans
ahead: `fedsim.network.disciplines.serial`. Here every message that is being sent has an alarm, so each operation takes
the same short time however many wait, but for a pause and its end, which touch each message that is being sent.
"""

from __future__ import annotations

from collections.abc import Collection

from simpy import Environment

from fedsim.kernel.clock import Alarm
from fedsim.network.disciplines.channel import Channel, Flow, FlowQueue

__all__ = ["MultiServerChannel"]


class _Carrier:
    """A carrier that sends one message after the other, without a gap."""

    __slots__ = ("busy_since_s", "work_s")

    def __init__(self, now_s: float) -> None:
        self.busy_since_s = now_s
        self.work_s = 0.0
        """What is sent from then on: a sum of its own, as late times round more."""


class MultiServerChannel(Channel):
    """Serves whole messages first come, first served, each on one of the carriers, at its own full rate."""

    __slots__ = ("_sending", "_waiting")

    def __init__(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> None:
        super().__init__(env, delay_s, carriers)
        self._sending: dict[Flow, _Carrier] = {}
        """Those that have a carrier, in the order in which they were started."""
        self._waiting = FlowQueue()

    @property
    def flows(self) -> Collection[Flow]:
        """In the order in which they were started."""
        return [*self._sending, *self._waiting]

    def start(self, flow: Flow) -> None:
        """Send a message if a carrier is free; if not, queue it behind those that came before."""
        flow.ticket = 0
        self._waiting.append(flow)
        self._fill()

    def stop(self, flow: Flow) -> None:
        """Take a message out of the queue, off its carrier, or off the way to the other end."""
        if not self.holds(flow):
            self._recall(flow)
            return
        flow.ticket = -1
        if flow not in self._sending:
            self._waiting.remove(flow)
            return
        self._halt(flow)
        del self._sending[flow]
        self._fill()

    def adjust(self, flow: Flow, need_s: float, share: float) -> None:
        """Go on with another need, on the same carrier or at the same place in the queue."""
        self._halt(flow)
        flow.need_s, flow.share = need_s, share
        if flow in self._sending and not self.paused:
            self._run(flow, _Carrier(self.env.now))

    def pause(self) -> None:
        """Stop sending; each message keeps its carrier."""
        self.paused = True
        for flow in self._sending:
            self._halt(flow)

    def resume(self) -> None:
        """Send again."""
        self.paused = False
        for flow in self._sending:
            self._run(flow, _Carrier(self.env.now))
        self._fill()

    def served_s(self, flow: Flow) -> float:
        """All the time since it was given a carrier, or since the last pause."""
        return self.env.now - flow.since if flow.alarm is not None else 0.0

    def _fill(self) -> None:
        """Give carriers that are free to the first that wait."""
        while not self.paused and len(self._sending) < self.carriers and (flow := self._waiting.first) is not None:
            self._waiting.remove(flow)
            self._run(flow, _Carrier(self.env.now))

    def _run(self, flow: Flow, carrier: _Carrier) -> None:
        """Send it on *carrier*, behind what that has sent."""
        now_s = flow.since = self.env.now
        if flow.begun_s is None:
            flow.begun_s = now_s
        self._sending[flow] = carrier
        carrier.work_s += flow.need_s
        due_s = carrier.busy_since_s + carrier.work_s
        flow.alarm = Alarm(self.env, max(0.0, due_s - now_s), self._done, flow)

    def _halt(self, flow: Flow) -> None:
        if flow.alarm is not None:
            flow.alarm.stop()
            flow.book(self.served_s(flow))
            flow.alarm = None

    def _done(self, alarm: Alarm) -> None:
        flow: Flow = alarm.of
        carrier = self._sending.pop(flow)
        flow.alarm = None
        flow.book_all()
        if (follower := self._waiting.first) is not None:
            self._waiting.remove(follower)
            self._run(follower, carrier)
        self._send_off(flow)
