"""Equal airtime among those who send at the same time: exact processor sharing, as round-robin schedulers come near.

Each flow gets a part of the channel in proportion to its weight, but at most its own largest share; what it leaves
goes to the others (weighted max-min, *water-filling*). All flows of one share and weight progress alike, so such a
class has one virtual clock: it advances by the seconds, at full rate, that each of its flows is given. A flow that
needs w more of these is sent when the clock, at V now, reads V + w. So an arrival or a departure costs
O(classes + log flows), and no other flow is touched (the virtual time of fair queueing: Parekh and Gallager, IEEE/ACM
Transactions on Networking 1, 1993; weights: discriminatory processor sharing, Altman et al., Queueing Systems 53,
2006).

One alarm waits for the next departure. Arrivals only put it off, so the alarm is left as it is, and set again when it
rings too early. The flow that is due is taken by identity, whatever its clock reads: no comparison of rounded times can
keep it from leaving. Nor is the clock set to what was due, or roundings would add up over many departures. Leaves out
the slots of real schedulers: sharing is fluid.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from heapq import heapify, heappop, heappush
from itertools import accumulate, count
from operator import itemgetter
from typing import Literal

from pydantic import Field
from simpy import Environment

from fedsim.kernel.clock import Alarm
from fedsim.network.disciplines.channel import Channel, Discipline, Flow
from fedsim.settings import Positive

__all__ = ["Fair", "FairChannel"]


class _Class:
    """The flows of one share and weight, and their virtual clock."""

    __slots__ = ("clock_s", "flows", "queue", "share", "speed", "void", "weight")

    def __init__(self, share: float, weight: float) -> None:
        self.share = share
        self.weight = weight
        self.flows = 0
        """How many are on the channel."""
        self.clock_s = 0.0
        """Seconds, at full rate, that each flow has been given since the class was last empty."""
        self.speed = 1.0
        """Of the clock: the part of their full rate that its flows have now."""
        self.queue: list[tuple[float, int, Flow]] = []
        """A heap of (reading at which it is sent, ticket, flow)."""
        self.void: set[int] = set()
        """Tickets in the queue whose flows were taken off: they may be back with another one, or on another channel."""

    def next_reading_s(self) -> float:
        """What the clock reads when the next flow has been sent; there must be one."""
        while self.void and self.queue[0][1] in self.void:
            self.void.remove(heappop(self.queue)[1])
        return self.queue[0][0]

    def add(self, flow: Flow, ticket: int) -> None:
        if not self.flows:
            self.clock_s = 0.0  # small numbers round less
            self.queue.clear()
            self.void.clear()
        self.flows += 1
        flow.ticket = ticket
        flow.since = self.clock_s
        heappush(self.queue, (self.clock_s + flow.need_s, ticket, flow))

    def remove(self, flow: Flow) -> None:
        """Take out *flow*; its entry in the queue becomes void."""
        self.flows -= 1
        self.void.add(flow.ticket)
        flow.ticket = -1
        if len(self.void) > self.flows + 32:
            self.queue = [entry for entry in self.queue if entry[1] not in self.void]
            self.void.clear()
            heapify(self.queue)


class FairChannel(Channel):
    """Serves all at once, each with its fair part of the airtime."""

    __slots__ = ("_alarm", "_alarm_s", "_classes", "_due", "_leaving", "_since_s", "_tickets")

    def __init__(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> None:
        super().__init__(env, delay_s, carriers)
        self._classes: list[_Class] = []
        self._tickets = count()
        self._since_s = env.now
        """When the virtual clocks were last read."""
        self._alarm: Alarm | None = None
        self._alarm_s = math.inf
        """When it rings; not later than the next departure."""
        self._due: _Class | None = None
        """Whose first flow leaves when the alarm rings, if nothing has changed until then."""
        self._leaving: list[Flow] = []
        """Those who leave together and have not been told so yet, in the opposite order."""

    @property
    def flows(self) -> Collection[Flow]:
        """In the order in which they were started."""
        present = [entry for one in self._classes for entry in one.queue if entry[1] not in one.void]
        return [flow for _, _, flow in sorted(present, key=itemgetter(1))]

    @property
    def sent(self) -> Collection[Flow]:
        """With those that leave now and have not been told so yet."""
        return [*reversed(self._leaving), *super().sent]

    def start(self, flow: Flow) -> None:
        """Share the channel with one more from now on."""
        now_s = self.env.now
        if flow.begun_s is None and not self.paused:
            flow.begun_s = now_s
        if now_s > self._since_s:
            self._read_clocks()
        own = self._class_of(flow)
        own.add(flow, next(self._tickets))
        self._share_out()
        self._due = None
        if self._alarm is None or own.queue[0][2] is flow:  # nobody else is sent any sooner than before
            self._set_alarm()

    def stop(self, flow: Flow) -> None:
        """Leave its part to the others, or forget what is on the way."""
        if flow in self._leaving:
            self._leaving.remove(flow)
            return
        if not self.holds(flow):
            self._recall(flow)
            return
        self._read_clocks()
        own = self._class_of(flow)
        flow.book(self.served_s(flow))
        own.remove(flow)
        self._forget(own)
        self._share_out()
        self._set_alarm()

    def adjust(self, flow: Flow, need_s: float, share: float) -> None:
        """Leave, and come back with another need."""
        self.stop(flow)
        flow.need_s, flow.share = need_s, share
        self.start(flow)

    def pause(self) -> None:
        """Stop all clocks."""
        self._read_clocks()
        self.paused = True
        self._share_out()
        self._set_alarm()

    def resume(self) -> None:
        """Let the clocks go on."""
        self._read_clocks()
        self.paused = False
        for flow in self.flows:
            if flow.begun_s is None:
                flow.begun_s = self.env.now
        self._share_out()
        self._set_alarm()

    def served_s(self, flow: Flow) -> float:
        """What the virtual clock of its class says."""
        own = self._class_of(flow)
        return max(0.0, own.clock_s + own.speed * (self.env.now - self._since_s) - flow.since)  # the clock rounds

    def _class_of(self, flow: Flow) -> _Class:
        for one in self._classes:  # few, and mostly one
            if one.share == flow.share and one.weight == flow.weight:
                return one
        self._classes.append(_Class(flow.share, flow.weight))
        return self._classes[-1]

    def _read_clocks(self) -> None:
        passed_s = self.env.now - self._since_s
        self._since_s = self.env.now
        if passed_s > 0:
            for one in self._classes:
                if one.flows:
                    one.clock_s += one.speed * passed_s

    def _forget(self, one: _Class) -> None:
        """Keep a few empty classes for those who come back, not one for every share there ever was."""
        if not one.flows and len(self._classes) > 8:
            self._classes.remove(one)

    def _share_out(self) -> None:
        """The speed of every class: water-filling over the classes.

        Each class gets its weight's part of what is left to it and to those behind it, or all that it can use, where
        that is less; then there is more for those behind. They come in the order in which the water reaches their
        brim, so from the first class on that cannot have all, none can: what is left, and whose weights share it, stay
        the same. Sums of weights are made from the end: taking weights off would leave roundings that nobody has.
        """
        if len(self._classes) == 1:
            only = self._classes[0]
            wanted = only.flows * only.share
            only.speed = 0.0 if self.paused else 1.0 if wanted <= 1.0 else 1.0 / wanted
            return
        waiting = sorted((one for one in self._classes if one.flows), key=_need_per_weight)
        weights_of_last = [0.0, *accumulate(one.flows * one.weight for one in reversed(waiting))]
        left, weights = 1.0, weights_of_last[-1]
        for behind, one in zip(reversed(range(len(waiting))), waiting, strict=True):
            if self.paused:
                one.speed = 0.0
            elif one.share * weights <= one.weight * left:  # it needs no more than its part
                one.speed = 1.0
                left = max(0.0, left - one.flows * one.share)
                weights = weights_of_last[behind]
            else:
                one.speed = min(1.0, one.weight * left / (weights * one.share))

    def _next(self) -> tuple[float, _Class | None]:
        """When the next flow is sent, and its class."""
        due_s, due = math.inf, None
        for one in self._classes:
            if one.flows and not self.paused:
                left_s = one.next_reading_s() - one.clock_s
                if left_s > 0 and one.speed == 0:  # beside one of a weight that is beyond all measure
                    continue
                at_s = self._since_s + left_s / one.speed if left_s > 0 else self._since_s
                if at_s < due_s:
                    due_s, due = at_s, one
        return due_s, due

    def _set_alarm(self) -> None:
        """See to it that the alarm rings no later than the next departure."""
        due_s, due = self._next()
        if due_s < self._alarm_s:
            if self._alarm is not None:
                self._alarm.stop()
            self._alarm = Alarm(self.env, max(0.0, due_s - self.env.now), self._ring)
            self._alarm_s, self._due = due_s, due
        else:
            self._due = due if due_s == self._alarm_s else None

    def _ring(self, _: Alarm) -> None:
        self._alarm, self._alarm_s = None, math.inf
        due = self._due
        if due is None:
            due_s, due = self._next()
            if due_s > self.env.now:
                self._set_alarm()
                return
        if due is not None:
            self._depart(due)

    def _depart(self, due: _Class) -> None:
        """Let the first flow of a class leave, and those that are sent at the same reading of its clock."""
        self._read_clocks()
        reading_s = max(due.next_reading_s(), due.clock_s)
        while due.queue and due.queue[0][0] <= reading_s:
            _, ticket, flow = heappop(due.queue)
            if ticket in due.void:
                due.void.remove(ticket)
            else:
                self._leaving.append(flow)
        due.flows -= len(self._leaving)
        for flow in self._leaving:
            flow.book_all()
        self._leaving.reverse()
        self._forget(due)
        self._share_out()
        self._set_alarm()
        while self._leaving:
            self._send_off(self._leaving.pop())


def _need_per_weight(one: _Class) -> float:
    return one.share / one.weight


class Fair(Discipline):
    """Equal airtime for all who send at the same time; a device that can use only a part leaves the rest to others."""

    shared_at_once = True

    name: Literal["fair"] = "fair"
    weights: dict[str, Positive] = Field(default_factory=dict)
    """Parts of the airtime relative to each other, by device class; a class that is not named has weight 1."""

    def make_channel(self, env: Environment, delay_s: float = 0.0, carriers: int = 1) -> Channel:
        """A processor-sharing channel."""
        return FairChannel(env, delay_s, carriers)

    def weight(self, device_class: str | None) -> float:
        """As given under ``weights``."""
        return self.weights.get(device_class, 1.0) if device_class is not None else 1.0
