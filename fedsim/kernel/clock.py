"""The simulated clock: SimPy's environment, in SimPy's order, with a shortcut for what happens at once.

SimPy keeps all events in one heap, ordered by time, priority and number. Half of a simulation's events happen in the
instant in which they are scheduled (a process begins, ends, is interrupted), and with a hundred thousand devices under
way each of them would travel through a heap of a hundred thousand timers. Here they wait in two queues beside the heap.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from simpy import Environment, Event
from simpy.core import EmptySchedule, StopSimulation
from simpy.events import NORMAL, URGENT, EventPriority

__all__ = ["Clock"]


class Clock(Environment):
    """An environment that processes the same events in the same order as `simpy.Environment`."""

    now: float = 0.0
    """Simulated seconds: a plain attribute here, as nothing is read as often."""

    def __init__(self, initial_time: float = 0.0) -> None:
        super().__init__(initial_time)
        self.now = initial_time
        self._urgent: deque[Event] = deque()
        """Urgent events of this instant, in the order in which they were scheduled."""
        self._soon: deque[Event] = deque()
        """Other events of this instant, but for those that happen at its end."""

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0.0) -> None:
        """Schedule *event* for *delay* seconds from now."""
        at_s = self.now + delay
        if at_s > self.now or priority > NORMAL:
            heappush(self._queue, (at_s, priority, next(self._eid), event))
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
