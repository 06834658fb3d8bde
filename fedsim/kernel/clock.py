"""The simulated clock: SimPy's environment, in SimPy's order, for a hundred thousand devices under way.

SimPy keeps all events in one heap, ordered by time, priority and number. Half of a simulation's events happen in the
instant in which they are scheduled; here they wait in two queues beside the heap. And of the others most are far ahead:
these wait in a list, which is sorted when the heap of the near ones has run empty. So the heap stays small enough for a
processor's cache, which is what makes it fast (the idea of ladder queues: Tang, Goh and Thng, ACM TOMACS 15, 2005).

And two shortcuts past SimPy's general events: an alarm that costs one small object, and an event that happens at once.
A simulation of many devices sets millions of timers, most of them for a single listener. Leaves out values, failures
and conditions: for these there are `simpy.Event` and `simpy.Timeout`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from simpy import Environment, Event
from simpy.core import EmptySchedule, StopSimulation
from simpy.events import NORMAL, URGENT, EventPriority

__all__ = ["Alarm", "Clock", "happen"]

END_OF_TIME: tuple[Any, ...] = (math.inf,)


class Clock(Environment):
    """An environment that processes the same events in the same order as `simpy.Environment`."""

    MOST_NEAR = 4_096
    """Events that the heap may hold before the later half of them is put off."""

    now: float = 0.0
    """Simulated seconds: a plain attribute here, as nothing is read as often."""

    def __init__(self, initial_time: float = 0.0) -> None:
        super().__init__(initial_time)
        self.now = initial_time
        self._urgent: deque[Event] = deque()
        """Urgent events of this instant, in the order in which they were scheduled."""
        self._soon: deque[Event] = deque()
        """Other events of this instant, but for those that happen at its end."""
        self._far: list[tuple[Any, ...]] = []
        """Entries that come after the horizon, in no order."""
        self._horizon = END_OF_TIME
        """The heap has all entries before it, and the list of the far ones all others. The heap may run empty only when
        that list is empty too, as `step` and `peek` look at the heap alone: so `step` fills it as soon as it has taken
        the last entry, before anything else is scheduled. No two entries are equal, as each has its own number."""

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0.0) -> None:
        """Schedule *event* for *delay* seconds from now."""
        at_s = self.now + delay
        if at_s > self.now or priority > NORMAL:
            entry = (at_s, priority, next(self._eid), event)
            if entry < self._horizon:
                heappush(self._queue, entry)
                if len(self._queue) > self.MOST_NEAR:
                    self._put_off()
            else:
                self._far.append(entry)
        elif priority == NORMAL:
            self._soon.append(event)
        elif priority == URGENT:
            self._urgent.append(event)
        else:
            self._urgent.appendleft(event)  # SimPy goes on there after a simulation was stopped

    def peek(self) -> float:
        """When the next event happens; infinite when there is none."""
        return self.now if self._urgent or self._soon else float(super().peek())

    def step(self) -> None:
        """Process the next event. Raises `simpy.core.EmptySchedule` when there is none."""
        queue = self._queue
        if self._urgent and not (queue and queue[0][0] <= self.now and queue[0][1] <= URGENT):
            event = self._urgent.popleft()
        elif self._soon and not (queue and queue[0][0] <= self.now and queue[0][1] <= NORMAL):
            event = self._soon.popleft()
        elif queue:
            at_s, _, _, event = heappop(queue)
            self._now = self.now = at_s
            if not queue and self._far:
                self._bring_near()
        else:
            raise EmptySchedule
        callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
        try:
            for callback in callbacks:
                callback(event)
        except StopSimulation:
            event.callbacks = callbacks[callbacks.index(callback) + 1 :]
            self.schedule(event, EventPriority(-1))
            raise
        if not event._ok and not hasattr(event, "_defused"):  # a failure that nobody waits for
            failure = type(event._value)(*event._value.args)
            failure.__cause__ = event._value
            raise failure

    def _put_off(self) -> None:
        """Put the later half of the heap beyond the horizon, which comes nearer: it was behind all of them."""
        self._queue.sort()  # a sorted list is a heap
        half = len(self._queue) // 2
        self._far += self._queue[half:]
        self._horizon = self._queue[half]
        del self._queue[half:]

    def _bring_near(self) -> None:
        """Fill the empty heap with the first of those beyond the horizon."""
        self._far.sort()  # quick: the most part of it is sorted already
        some = max(self.MOST_NEAR // 2, len(self._far) // 16)
        self._queue += self._far[:some]
        del self._far[:some]
        self._horizon = self._far[0] if self._far else END_OF_TIME


class Alarm:
    """Calls one function *delay_s* seconds from now, unless it is stopped before."""

    __slots__ = ("_ok", "callbacks", "of")

    def __init__(self, env: Environment, delay_s: float, action: Callable[[Alarm], None], of: Any = None) -> None:
        self.callbacks: tuple[Callable[[Alarm], None], ...] | None = (action,)
        self.of = of
        """Whatever the action wants to find here."""
        self._ok = True
        env.schedule(self, NORMAL, delay_s)  # type: ignore[arg-type]

    def stop(self) -> None:
        """Never ring."""
        self.callbacks = ()
        self.of = None


def happen(event: Event, value: Any = None, *, ok: bool = True) -> None:
    """Let *event* happen now, inside the event that is being processed, instead of as the next one of this instant.

    With *ok* false it fails, and *value* is the exception. Must not be called from within a process: those who wait for
    *event* go on at once.
    """
    event._ok, event._value = ok, value
    callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment]
    for callback in callbacks:
        callback(event)
