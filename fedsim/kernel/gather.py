"""Waiting for several journeys at once: until enough have arrived, all have ended, or the deadline has passed.

A journey that ends exactly at the deadline has arrived: the deadline is the last thing that happens in its instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from simpy import Environment, Event, Process
from simpy.events import EventPriority

from fedsim.kernel.trip import Lost, Trip

Journey = Process | Trip
"""What can be waited for: a trip, or a SimPy process."""

__all__ = ["LAST_IN_ITS_INSTANT", "Gathered", "Journey", "Lost", "at_the_end_of", "gather", "give_up"]

LAST_IN_ITS_INSTANT = EventPriority(2)  # SimPy's URGENT is 0 and NORMAL is 1; the larger, the later


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came of the journeys, each list in the order in which they were started."""

    arrived: list[Any] = field(default_factory=list)
    """The values that arrived."""
    lost: list[Journey] = field(default_factory=list)
    """Journeys that ended in `Lost`."""
    late: list[Journey] = field(default_factory=list)
    """Journeys that are still under way."""
    last: Journey | None = None
    """The one whose end was waited for, as nothing else was after it; None where the deadline ended the waiting."""
    since_s: float = 0.0
    """When the last journey ended that was waited for; where none has, when the waiting began."""


def at_the_end_of(env: Environment, delay_s: float, *, after: int = 0) -> Event:
    """An event *delay_s* seconds from now, after everything else that happens at that time.

    Of several such events in one instant, those with the smaller *after* come first, with all that they cause.
    """
    event = Event(env)
    event._ok, event._value = True, None
    env.schedule(event, priority=EventPriority(LAST_IN_ITS_INSTANT + after), delay=delay_s)
    return event


def gather(
    env: Environment, journeys: Sequence[Journey], *, deadline_s: float | None = None, count: int | None = None
) -> Event:
    """An event whose value is `Gathered`.

    It happens as soon as *count* journeys have arrived (``None``: all), none is under way any more, or *deadline_s*
    seconds from now have passed (``None``: no deadline). A journey that fails with `Lost` is noted; any other exception
    makes the event fail with it. When a trip that waits for the event is interrupted, so are the journeys.
    """
    done = _Gathering(env)
    waiting = done.waiting = _Waiting(done, list(journeys), len(journeys) if count is None else count)
    ended = waiting.ended
    for journey in journeys:
        if journey.callbacks is None:
            ended(journey)
        else:
            journey.callbacks.append(ended)
    if deadline_s is not None:
        at_the_end_of(env, deadline_s).callbacks.append(waiting.close)
    if not journeys:
        waiting.close()
    return done


def give_up(journeys: Iterable[Journey | None], why: str) -> None:
    """Interrupt those that are still under way: whoever is late, asked again or out of order.

    A SimPy process among them gets `simpy.Interrupt`, as ever, and has to raise `Abandoned` in its place.
    """
    for journey in journeys:
        if journey is not None and journey.is_alive:  # what is late may have ended since, in the very same instant
            journey.interrupt(why)


class _Gathering(Event):
    """Apart from what its journeys call back, for it keeps their results."""

    waiting: _Waiting

    def give_up(self) -> None:
        """Who waited for it was interrupted: so are its journeys."""
        journeys = self._value.late if self.triggered and self._ok else self.waiting.journeys
        self.waiting.close_unseen()
        give_up(journeys, "nobody waits for it any more")


class _Waiting:
    """Holds results only until the gathering is closed, so that a late journey keeps nobody else's result alive."""

    def __init__(self, done: Event, journeys: list[Journey], wanted: int) -> None:
        self.done: Event | None = done
        self.journeys = journeys
        self.wanted = wanted
        self.arrived = 0
        self.since_s = done.env.now
        self.outcomes: dict[Journey, bool] = {}  # arrived or lost

    def ended(self, journey: Any) -> None:
        ok = journey.ok
        failed_softly = not ok and isinstance(journey.value, Lost)
        if failed_softly:
            journey.defused = True
        if self.done is None:
            return
        if not ok and not failed_softly:
            journey.defused = True
            self.done.fail(cast(Exception, journey.value))
            self.close_unseen()
            return
        self.outcomes[journey] = ok
        self.arrived += ok
        self.since_s = self.done.env.now
        if self.arrived == self.wanted or len(self.outcomes) == len(self.journeys):
            self.close(last=journey)

    def close(self, _: Event | None = None, *, last: Journey | None = None) -> None:
        if self.done is None:
            return
        self.done.succeed(
            Gathered(
                [journey.value for journey in self.journeys if self.outcomes.get(journey) is True],
                [journey for journey in self.journeys if self.outcomes.get(journey) is False],
                [journey for journey in self.journeys if journey not in self.outcomes],
                last,
                self.since_s,
            )
        )
        self.close_unseen()

    def close_unseen(self) -> None:
        """Tell nobody, and forget what has come so far."""
        self.done, self.journeys, self.outcomes = None, [], {}
