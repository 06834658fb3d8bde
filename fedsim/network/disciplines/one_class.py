"""Flows that share alike: they progress together, so one virtual clock is kept for all of them.

A class is all flows of one share and weight. Its clock advances by the seconds, at full rate, that each of its flows is
given: a flow that needs w more of these is sent when the clock, at V now, reads V + w. Who comes or goes costs O(log
flows), and no other flow is touched.

While all flows of a channel are alike, that is all there is to it: each has an equal part.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from fedsim.network.disciplines.channel import Flow

__all__ = ["FlowClass", "OneClass", "Sharing"]


class FlowClass:
    """The flows of one share and weight, and their virtual clock."""

    __slots__ = ("clock_s", "flows", "queue", "share", "void", "weight")

    def __init__(self, share: float, weight: float) -> None:
        self.share = share
        self.weight = weight
        self.flows = 0
        """How many are on the channel."""
        self.clock_s = 0.0
        """Seconds, at full rate, that each flow has been given since the class was last empty: as of when it was last
        read."""
        self.queue: list[tuple[float, int, Flow]] = []
        """A heap of (reading at which it is sent, ticket, flow)."""
        self.void: set[int] = set()
        """Tickets in the queue whose flows were taken off: they may be back with another one, or on another channel."""

    def next_reading_s(self) -> float:
        """What the clock reads when the next flow has been sent; there must be one."""
        while self.void and self.queue[0][1] in self.void:
            self.void.remove(heappop(self.queue)[1])
        return self.queue[0][0]

    def add(self, flow: Flow, ticket: int, clock_s: float) -> None:
        """Take *flow* on while the clock reads *clock_s*."""
        self.flows += 1
        flow.ticket = ticket
        flow.since = clock_s
        heappush(self.queue, (clock_s + flow.need_s, ticket, flow))

    def remove(self, flow: Flow) -> None:
        """Take out *flow*; its entry in the queue becomes void."""
        self.flows -= 1
        self.void.add(flow.ticket)
        flow.ticket = -1
        if len(self.void) > self.flows + 32:
            self.queue = [entry for entry in self.queue if entry[1] not in self.void]
            self.void.clear()
            heapify(self.queue)

    def depart(self, clock_s: float) -> list[Flow]:
        """Take out the next flow, which is sent now, and those that are sent at the same reading of the clock.

        It is the next one, whatever the clock reads: no comparison of rounded times can keep it from leaving.
        """
        reading_s = max(self.next_reading_s(), clock_s)
        leaving = []
        while self.queue and self.queue[0][0] <= reading_s:
            _, ticket, flow = heappop(self.queue)
            if ticket in self.void:
                self.void.remove(ticket)
            else:
                leaving.append(flow)
        self.flows -= len(leaving)
        for flow in leaving:
            flow.book_all()
        return leaving

    def take_over(self, other: FlowClass) -> None:
        """Be what *other*, of the same share and weight, has been."""
        self.flows, self.clock_s, self.queue, self.void = other.flows, other.clock_s, other.queue, other.void

    def present(self) -> Iterator[tuple[int, Flow]]:
        """The flows, each with its ticket."""
        return ((ticket, flow) for _, ticket, flow in self.queue if ticket not in self.void)


class Sharing(ABC):
    """Flows that share a channel, and how far they are. It is told the time: it has no clocks but virtual ones."""

    __slots__ = ("capacity", "since_s")

    def __init__(self, capacity: int, now_s: float) -> None:
        self.capacity = capacity
        """How many carriers there are to share; none during a pause."""
        self.since_s = now_s
        """When the virtual clocks were last read."""

    @abstractmethod
    def takes(self, flow: Flow) -> bool:
        """Whether *flow* can join it."""

    @abstractmethod
    def add(self, flow: Flow, ticket: int, now_s: float) -> bool:
        """Let *flow* join; returns whether it may be the next that is sent."""

    @abstractmethod
    def remove(self, flow: Flow, now_s: float) -> None:
        """Let *flow* go, with what it has been given booked."""

    @abstractmethod
    def depart(self, due: FlowClass, now_s: float) -> list[Flow]:
        """Let the next flow of a class go, which is sent now, and its equals that are sent with it."""

    @abstractmethod
    def set_capacity(self, capacity: int, now_s: float) -> None:
        """From now on there are so many carriers."""

    @abstractmethod
    def next_departure(self) -> tuple[float, FlowClass | None]:
        """When the next flow is sent, and its class."""

    @abstractmethod
    def served_s(self, flow: Flow, now_s: float) -> float:
        """Seconds, at its full rate, that *flow* has been given since it joined."""

    @abstractmethod
    def present(self) -> list[tuple[int, Flow]]:
        """All flows, each with its ticket."""


class OneClass(Sharing):
    """Flows of one share and weight."""

    __slots__ = ("only", "speed")

    def __init__(self, flow: Flow, capacity: int, now_s: float) -> None:
        super().__init__(capacity, now_s)
        self.only = FlowClass(flow.share, flow.weight)
        self.speed = 1.0
        """Of the clock: the part of their full rate that they have now."""

    def takes(self, flow: Flow) -> bool:
        """Whether it is like the others."""
        only = self.only
        if only.share == flow.share and only.weight == flow.weight:
            return True
        if only.flows:
            return False
        only.share, only.weight = flow.share, flow.weight
        return True

    def read_clock(self, now_s: float) -> FlowClass:
        """The class, with its clock read now."""
        only, passed_s = self.only, now_s - self.since_s
        if passed_s > 0:
            self.since_s = now_s
            if only.flows:
                only.clock_s += self.speed * passed_s
        return only

    def add(self, flow: Flow, ticket: int, now_s: float) -> bool:
        """In O(log flows)."""
        only = self.read_clock(now_s)
        if not only.flows:
            only.clock_s = 0.0  # small numbers round less
            only.queue.clear()
            only.void.clear()
        only.add(flow, ticket, only.clock_s)
        self._share_out()
        return only.queue[0][2] is flow

    def remove(self, flow: Flow, now_s: float) -> None:
        """In O(log flows)."""
        only = self.read_clock(now_s)
        flow.book(self.served_s(flow, now_s))
        only.remove(flow)
        self._share_out()

    def depart(self, due: FlowClass, now_s: float) -> list[Flow]:
        """In O(log flows) for each that leaves."""
        leaving = due.depart(self.read_clock(now_s).clock_s)
        self._share_out()
        return leaving

    def set_capacity(self, capacity: int, now_s: float) -> None:
        """At once."""
        self.read_clock(now_s)
        self.capacity = capacity
        self._share_out()

    def next_departure(self) -> tuple[float, FlowClass | None]:
        """The first of its queue."""
        only = self.only
        if not only.flows or not self.capacity:
            return math.inf, None
        left_s = only.next_reading_s() - only.clock_s
        return (self.since_s + left_s / self.speed if left_s > 0 else self.since_s), only

    def served_s(self, flow: Flow, now_s: float) -> float:
        """What the virtual clock says."""
        return max(0.0, self.only.clock_s + self.speed * (now_s - self.since_s) - flow.since)  # the clock rounds

    def present(self) -> list[tuple[int, Flow]]:
        """In no order."""
        return [*self.only.present()] if self.only.flows else []

    def _share_out(self) -> None:
        wanted = self.only.flows * self.only.share
        self.speed = 1.0 if wanted <= self.capacity else self.capacity / wanted
