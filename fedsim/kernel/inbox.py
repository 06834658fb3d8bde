"""What comes home, one after the other, for protocols that never wait for all.

::

    for client in first:
        inbox.expect(world.start(client, ...), order=client.index)
    while ...:
        arrival = yield from inbox.next()
        ...                                                         # use arrival.value, unless arrival.lost
        inbox.expect(world.start(another, ...), order=another.index)

However many are under way, each arrival takes one callback and one place in a queue, and all arrivals of one instant
take one event. (To gather the first of many, again and again, would look at all of them for each.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from operator import itemgetter
from typing import Any, NamedTuple

from simpy import Environment, Event

from fedsim.kernel.clock import happen
from fedsim.kernel.gather import Journey, at_the_end_of
from fedsim.kernel.trip import Lost

__all__ = ["Arrival", "Inbox"]


class Arrival(NamedTuple):
    """How a journey has ended."""

    journey: Journey
    value: Any
    """What it brought home; None when it was lost."""
    lost: bool
    """Whether it ended in `Lost`, for example because it was given up: nothing came home, but its client is free."""


class Inbox:
    """Journeys under way, and those that have ended and that nobody has asked for yet."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._orders: dict[Journey, int] = {}
        self._landed: list[tuple[int, Arrival]] = []
        """Those of this instant, which may still see others that go first."""
        self._ready: deque[Arrival] = deque()
        self._woken: Event | None = None
        """What `next` waits for."""

    @property
    def under_way(self) -> list[Journey]:
        """Those that have not ended, in the order in which they were expected."""
        return list(self._orders)

    def expect(self, journey: Journey, *, order: int = 0) -> None:
        """Let *journey* arrive here; where it has ended already, it arrives now.

        Of several that arrive in one instant, those with the smaller *order* are handed over first. A journey that ends
        in `Lost` arrives too; any other exception is raised in whoever waits for the next arrival, or ends the run.
        """
        self._orders[journey] = order
        if journey.callbacks is None:
            self._ended(journey)
        else:
            journey.callbacks.append(self._ended)

    def next(self) -> Generator[Event, Any, Arrival]:
        """The next arrival: ``arrival = yield from inbox.next()``. Waits for nothing when there is one already.

        Arrivals of one instant are handed over at its end. Whoever is interrupted meanwhile misses nothing: who asks
        next gets it, and those under way go on, unless they are given up (`fedsim.kernel.gather.give_up`).
        Raises `RuntimeError` when nothing is under way, and so nothing can ever arrive.
        """
        while not self._ready:
            if self._woken is None or self._woken.processed:
                if not self._orders and not self._landed:
                    raise RuntimeError("nothing is under way to this inbox: expect a journey before you wait for one")
                self._woken = Event(self._env)
            yield self._woken
        return self._ready.popleft()

    def _ended(self, journey: Any) -> None:
        order = self._orders.pop(journey)
        lost = not journey.ok
        if lost:
            journey.defused = True
            if not isinstance(journey.value, Lost):
                if self._woken is None or self._woken.triggered:
                    self._woken = Event(self._env)  # where nobody waits for it by then, its failure ends the run
                self._woken.fail(journey.value)
                return
        if not self._landed:
            at_the_end_of(self._env, 0.0).callbacks.append(self._hand_over)
        self._landed.append((order, Arrival(journey, None if lost else journey.value, lost)))

    def _hand_over(self, _: Event) -> None:
        self._landed.sort(key=itemgetter(0))
        self._ready.extend(arrival for _, arrival in self._landed)
        self._landed.clear()
        woken, self._woken = self._woken, None
        if woken is not None and not woken.triggered:
            happen(woken)
