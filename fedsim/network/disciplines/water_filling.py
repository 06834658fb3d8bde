"""Flows of many kinds that share: weighted max-min, *water-filling*, at a cost that hardly grows with the kinds.

Of a capacity C, a flow of share d and weight w gets min(d, w L), where the water level L is such that nothing is left
over that anybody could use. A class (all flows of one d and w) whose brim d / w is not above the level is *full*: its
flows have all that they can use. The others are *open*. In the order of the brims the full classes come first, and

    L = (C - sum of d over flows of full classes) / (sum of w over flows of open classes)

All full classes progress with plain time, and all open ones with one virtual clock, which advances by L a second:
airtime for each unit of weight (the virtual time of weighted fair queueing: Parekh and Gallager, IEEE/ACM Transactions
on Networking 1, 1993). A class of share d and weight w makes w / d seconds, at full rate, of each unit of it. So its
own clock need be read only when somebody asks, and set anew only when the class changes sides. Two heaps of classes say
who is next: by time, of the full ones, and by reading of the virtual clock, of the open ones.

An event costs O(log classes + log flows), for its own class and for each that changes sides: few, as the level moves by
the part of one flow, but all of them at worst. A class that comes or goes also moves those behind it in a list of
classes, which is one short copy of memory.

Sums of floats drift, and a virtual clock that light flows have made large would swallow what a heavy one needs. So
shares, weights, times and the virtual clock are whole numbers here, of units of 2^-180: of values from 2^-127 on that
is exact, in sums of any length and in the comparison of a brim with the level. Only the division by the sum of weights
rounds, by less than a unit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from heapq import heapify, heappop, heappush
from itertools import count

from fedsim.network.disciplines.channel import Flow
from fedsim.network.disciplines.one_class import FlowClass, OneClass, Sharing

__all__ = ["WaterFilling"]

UNITS, UNIT = 2.0**180, 2.0**-180
FAR = 2.0**600
"""Later than any reading of the virtual clock."""


def exact(number: float) -> int:
    """In units."""
    return int(number * UNITS)


class Basin(FlowClass):
    """A class among others: of the water it holds as much as its flows can use, up to its brim."""

    __slots__ = ("anchor", "entry", "full", "place", "share_exact", "speed_by_level", "weight_exact")

    def __init__(self, share: float, weight: float, number: int) -> None:
        super().__init__(share, weight)
        self.place = share / weight, number, self
        """In the order of the brims; no two have one number."""
        self.share_exact, self.weight_exact = exact(share) or 1, exact(weight) or 1
        self.speed_by_level = weight / share * UNIT
        """Seconds that its clock advances for each unit of the virtual clock, while it is open."""
        self.full = False
        """Whether its flows have all that they can use."""
        self.anchor: float = 0
        """The time, or the reading of the virtual clock, when its own clock was last set."""
        self.entry: Place | None = None
        """Its entry in a heap of those that wait for their next departure."""


Place = tuple[float, int, Basin]


class WaterFilling(Sharing):
    """Flows of several shares and weights."""

    __slots__ = ("_by_reading", "_by_time", "_classes", "_fulls", "_left", "_numbers", "_order", "_reading", "_weights")

    def __init__(self, sharing: OneClass, now_s: float) -> None:
        """Begin with those who have been alone so far."""
        super().__init__(sharing.capacity, now_s)
        self._classes: dict[tuple[float, float], Basin] = {}
        """Those that have flows, by share and weight."""
        self._order: list[Place] = []
        """The classes by (brim, number): the full ones first."""
        self._fulls = 0
        """How many of them are full."""
        self._left = sharing.capacity * exact(1.0)
        """What full classes leave of the capacity; exact."""
        self._weights = 0
        """Of all flows of open classes, together; exact."""
        self._reading = 0
        """Of the virtual clock; exact."""
        self._by_time: list[Place] = []
        """A heap of (time at which its next flow is sent, number, class) for the full classes. An entry that is not its
        class's own any more is void."""
        self._by_reading: list[Place] = []
        """As much for the open classes, by the reading of the virtual clock at which its next flow is sent."""
        self._numbers = count()
        first = Basin(sharing.only.share, sharing.only.weight, next(self._numbers))
        first.take_over(sharing.read_clock(now_s))
        self._enter(first)
        self._count(first, first.flows)
        self._find_level()

    def takes(self, flow: Flow) -> bool:
        """Whoever comes while others are here; the next one after that begins anew."""
        return bool(self._classes)

    def add(self, flow: Flow, ticket: int, now_s: float) -> bool:
        """Let *flow* join its class, which may be a new one."""
        self._read_clock(now_s)
        own = self._classes.get((flow.share, flow.weight))
        if own is None:
            own = Basin(flow.share, flow.weight, next(self._numbers))
            own.add(flow, ticket, 0.0)
            self._enter(own)
            first = True
        else:
            own.add(flow, ticket, self._clock_s(own, now_s, self._reading))
            first = own.queue[0][2] is flow
            if first:
                self._wait_for_next(own)
        self._count(own, 1)
        self._find_level()
        return first

    def remove(self, flow: Flow, now_s: float) -> None:
        """Take *flow* out of its class, which may have been the last one there."""
        self._read_clock(now_s)
        own = self._classes[flow.share, flow.weight]
        flow.book(self.served_s(flow, now_s))
        first = own.queue[0][2] is flow
        own.remove(flow)
        self._without(own, 1, first=first)

    def depart(self, due: FlowClass, now_s: float) -> list[Flow]:
        """Take those who are sent together out of their class."""
        self._read_clock(now_s)
        own = self._classes[due.share, due.weight]
        leaving = own.depart(self._clock_s(own, now_s, self._reading))
        self._without(own, len(leaving), first=True)
        return leaving

    def set_capacity(self, capacity: int, now_s: float) -> None:
        """When there is none all classes are open, the level is 0, and the virtual clock stands still."""
        self._read_clock(now_s)
        self._left += (capacity - self.capacity) * exact(1.0)
        self.capacity = capacity
        self._find_level()

    def next_departure(self) -> tuple[float, FlowClass | None]:
        """The first of the full or of the open classes."""
        due_s: float = math.inf
        due: FlowClass | None = None
        if not self.capacity:
            return due_s, due
        if full := self._first(self._by_time):
            due_s, due = full[0], full[2]
        if entry := self._first(self._by_reading):
            wait = entry[0] - self._reading
            at_s = self.since_s + wait * self._weights / self._left * UNIT if wait > 0 else self.since_s
            if at_s < due_s:
                due_s, due = at_s, entry[2]
        return due_s, due

    def served_s(self, flow: Flow, now_s: float) -> float:
        """What the clock of its class says."""
        own = self._classes[flow.share, flow.weight]
        return max(0.0, self._clock_s(own, now_s, self._reading_at(now_s)) - flow.since)  # clocks round

    def present(self) -> list[tuple[int, Flow]]:
        """In no order."""
        return [of_it for one in self._classes.values() for of_it in one.present()]

    # -- clocks --

    def _reading_at(self, now_s: float) -> int:
        """Of the virtual clock."""
        if not self._weights or now_s <= self.since_s:
            return self._reading
        return self._reading + (exact(now_s) - exact(self.since_s)) * self._left // self._weights

    def _read_clock(self, now_s: float) -> None:
        self._reading = self._reading_at(now_s)
        self.since_s = now_s

    def _clock_s(self, one: Basin, now_s: float, reading: int) -> float:
        """What the clock of a class says."""
        if one.full:
            return one.clock_s + (now_s - one.anchor)
        return one.clock_s + (reading - one.anchor) * one.speed_by_level

    def _wait_for_next(self, one: Basin) -> None:
        """Note in its heap when the next flow of a class is sent."""
        left_s = one.next_reading_s() - one.clock_s
        if one.full:
            heap, key = self._by_time, one.anchor + left_s
        else:
            heap, key = self._by_reading, one.anchor + int(min(left_s / one.speed_by_level, FAR))
        one.entry = (key, one.place[1], one)
        heappush(heap, one.entry)
        if len(heap) > 2 * len(self._classes) + 32:
            heap[:] = [entry for entry in heap if entry[2].entry is entry]
            heapify(heap)

    def _first(self, heap: list[Place]) -> Place | None:
        while heap and heap[0][2].entry is not heap[0]:
            heappop(heap)
        return heap[0] if heap else None

    # -- the level --

    def _enter(self, one: Basin) -> None:
        """A class comes, on the side on which its neighbours are, and its flows are still to be counted."""
        self._classes[one.share, one.weight] = one
        place = bisect_left(self._order, one.place)
        self._order.insert(place, one.place)
        one.full = place < self._fulls
        self._fulls += one.full
        one.anchor = self.since_s if one.full else self._reading
        self._wait_for_next(one)

    def _leave(self, one: Basin) -> None:
        """A class goes; what the channel keeps while it is empty is little."""
        del self._classes[one.share, one.weight]
        del self._order[bisect_left(self._order, one.place)]
        self._fulls -= one.full
        one.entry = None
        del one.place  # or it would hold itself for ever
        if not self._classes:
            self._by_time.clear()
            self._by_reading.clear()

    def _without(self, one: Basin, flows: int, *, first: bool) -> None:
        """So many flows of a class have gone, the first or another, and with the last one the class goes too."""
        self._count(one, -flows)
        if one.flows:
            if first:
                self._wait_for_next(one)
        else:
            self._leave(one)
        self._find_level()

    def _count(self, one: Basin, flows: int) -> None:
        """A class has so many more flows."""
        if one.full:
            self._left -= flows * one.share_exact
        else:
            self._weights += flows * one.weight_exact

    def _find_level(self) -> None:
        """Let those change sides whose brims the level has passed."""
        order = self._order
        while self._fulls < len(order) and self._fills(order[self._fulls][2]):
            self._turn(order[self._fulls][2])
            self._fulls += 1
        while self._fulls and not self._fills(order[self._fulls - 1][2]):
            self._fulls -= 1
            self._turn(order[self._fulls][2])

    def _fills(self, one: Basin) -> bool:
        """Whether its brim is not above the level; on which side it is counted makes no difference to that."""
        return one.share_exact * self._weights <= one.weight_exact * self._left

    def _turn(self, one: Basin) -> None:
        """A class changes sides: its clock goes on from where it is."""
        one.clock_s = self._clock_s(one, self.since_s, self._reading)
        self._count(one, -one.flows)
        one.full = not one.full
        self._count(one, one.flows)
        one.anchor = self.since_s if one.full else self._reading
        self._wait_for_next(one)
