"""What comes home one after the other: in which order, what of those who are lost, and how much work it is."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
import pytest
from simpy import Event
from tiers import mostly_long

from fedsim.kernel.clock import Clock
from fedsim.kernel.gather import give_up
from fedsim.kernel.inbox import Arrival, Inbox
from fedsim.kernel.trip import Abandoned, Lost, Trip


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def inbox(clock: Clock) -> Inbox:
    return Inbox(clock)


def away(clock: Clock, for_s: float, failure: Exception | None = None) -> Trip:
    """A journey that takes so long; one of no seconds has ended already."""

    def walk() -> Generator[Event, Any, float]:
        if for_s:
            yield clock.timeout(for_s)
        if failure is not None:
            raise failure
        return for_s

    return Trip(clock, walk())


def handed_over(clock: Clock, inbox: Inbox, number: int) -> list[tuple[float, Arrival]]:
    """The next so many arrivals, each with the time at which it was handed over."""

    def ask() -> Generator[Event, Any, list[tuple[float, Arrival]]]:
        arrivals = []
        for _ in range(number):
            arrival = yield from inbox.next()
            arrivals.append((clock.now, arrival))
        return arrivals

    trip = Trip(clock, ask())
    clock.run()
    arrivals: list[tuple[float, Arrival]] = trip.value
    return arrivals


def test_they_are_handed_over_as_they_arrive(clock: Clock, inbox: Inbox) -> None:
    for for_s in (3.0, 1.0, 2.0):
        inbox.expect(away(clock, for_s))
    assert [(at_s, arrival.value) for at_s, arrival in handed_over(clock, inbox, 3)] == [(1, 1), (2, 2), (3, 3)]


def test_of_one_instant_the_smaller_order_goes_first_and_then_who_was_there_first(clock: Clock, inbox: Inbox) -> None:
    journeys = [away(clock, 1.0) for _ in range(4)]
    for journey, order in zip(journeys[:3], (7, 1, 7), strict=True):
        inbox.expect(journey, order=order)
    inbox.expect(journeys[3])
    later = clock.timeout(0.5)
    later.callbacks.append(lambda _: inbox.expect(clock.timeout(0.5), order=-1))  # the last one to end in that instant
    arrivals = handed_over(clock, inbox, 5)
    assert [journeys.index(arrival.journey) for _, arrival in arrivals[1:]] == [3, 1, 0, 2]
    assert {at_s for at_s, _ in arrivals} == {1.0}


def test_what_nobody_has_asked_for_waits_in_the_order_of_arrival(clock: Clock, inbox: Inbox) -> None:
    for for_s, order in ((2.0, 0), (1.0, 1), (2.0, -1)):
        inbox.expect(away(clock, for_s), order=order)
    clock.run()
    assert [(at_s, arrival.value) for at_s, arrival in handed_over(clock, inbox, 3)] == [(2, 1), (2, 2), (2, 2)]


def test_what_has_ended_already_arrives_now(clock: Clock, inbox: Inbox) -> None:
    inbox.expect(away(clock, 0.0), order=1)
    inbox.expect(away(clock, 0.0, Lost("nobody there")), order=0)
    assert [(at_s, arrival.lost) for at_s, arrival in handed_over(clock, inbox, 2)] == [(0, True), (0, False)]


def test_who_is_lost_or_given_up_arrives_without_a_value(clock: Clock, inbox: Inbox) -> None:
    lost, late = away(clock, 1.0, Lost("on the way")), away(clock, 9.0)
    inbox.expect(lost)
    inbox.expect(late)
    assert inbox.under_way == [lost, late]
    clock.timeout(2.0).callbacks.append(lambda _: give_up(inbox.under_way, "too late"))
    assert handed_over(clock, inbox, 2) == [(1.0, Arrival(lost, None, True)), (2.0, Arrival(late, None, True))]
    assert inbox.under_way == []


@pytest.mark.parametrize("for_s", [0.0, 1.0])
def test_any_other_failure_is_raised_in_who_waits(clock: Clock, inbox: Inbox, for_s: float) -> None:
    inbox.expect(away(clock, for_s, ZeroDivisionError("a mistake")))

    def ask() -> Generator[Event, Any, str]:
        try:
            yield from inbox.next()
        except ZeroDivisionError as mistake:
            return str(mistake)
        return "arrived"

    trip = Trip(clock, ask())
    clock.run()
    assert trip.value == "a mistake"


@pytest.mark.parametrize("for_s", [0.0, 1.0])
def test_or_ends_the_run_where_nobody_waits(clock: Clock, inbox: Inbox, for_s: float) -> None:
    inbox.expect(away(clock, for_s, ZeroDivisionError("a mistake")))
    inbox.expect(away(clock, for_s, ZeroDivisionError("another mistake")))
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        clock.run()
    assert clock.now == for_s


def test_a_failure_hides_no_arrival_of_its_instant(clock: Clock, inbox: Inbox) -> None:
    for failure in (None, ZeroDivisionError("a mistake")):
        inbox.expect(away(clock, 1.0, failure))

    def ask() -> Generator[Event, Any, float]:
        with pytest.raises(ZeroDivisionError):
            yield from inbox.next()
        arrival = yield from inbox.next()
        assert isinstance(arrival.value, float)
        return arrival.value

    trip = Trip(clock, ask())
    clock.run()
    assert trip.value == 1.0


def test_to_wait_for_nothing_is_a_mistake(clock: Clock, inbox: Inbox) -> None:
    inbox.expect(away(clock, 1.0))
    handed_over(clock, inbox, 1)
    trip = Trip(clock, inbox.next())
    with pytest.raises(RuntimeError, match="nothing is under way"):
        clock.run()
    assert not trip.ok


def test_who_is_interrupted_while_he_waits_misses_nothing(clock: Clock, inbox: Inbox) -> None:
    journey = away(clock, 2.0)
    inbox.expect(journey)
    impatient = Trip(clock, inbox.next())
    impatient.defused = True
    clock.timeout(1.0).callbacks.append(lambda _: impatient.interrupt("too late"))
    clock.run(until=1.5)
    assert isinstance(impatient.value, Abandoned)
    assert handed_over(clock, inbox, 1) == [(2.0, Arrival(journey, 2.0, False))]


class Counting(Clock):
    scheduled = 0

    def schedule(self, *arguments: Any, **named: Any) -> None:
        self.scheduled += 1
        super().schedule(*arguments, **named)


def effort(journeys: int, instants: int) -> tuple[int, int]:
    """All journeys are under way together: events of all arrivals, and calls of functions for the first thousand."""
    clock, calls = Counting(), itertools.count()
    inbox = Inbox(clock)
    for number in range(journeys):
        inbox.expect(clock.timeout(1.0 + number * 7_919 % instants), order=-number)  # type: ignore[arg-type]

    def ask() -> Generator[Event, Any, None]:
        for number in range(journeys):
            if number == 1_000:
                sys.setprofile(before)
            yield from inbox.next()

    before = sys.getprofile()
    sys.setprofile(lambda *_: next(calls))
    try:
        Trip(clock, ask())
        clock.run()
    finally:
        sys.setprofile(before)
    assert clock.now == instants
    return clock.scheduled, next(calls)


@pytest.mark.slow
@pytest.mark.parametrize("many", mostly_long([20_000, 200_000], now=[20_000]))
def test_an_arrival_takes_as_much_work_however_many_are_under_way(many: int) -> None:
    events_of_few, calls_of_few = effort(2_000, 2_000)
    events_of_many, calls_of_many = effort(many, many)
    assert (events_of_few, events_of_many) == (2 * 2_000, 2 * many)  # the end of a journey, the end of its instant
    assert calls_of_many < 1.01 * calls_of_few < 100 * 1_000


def test_arrivals_of_one_instant_take_one_event() -> None:
    (events_of_few, calls_of_few), (events_of_many, calls_of_many) = effort(2_000, 1), effort(20_000, 1)
    assert (events_of_few, events_of_many) == (2_000 + 1, 20_000 + 1)
    assert calls_of_many < 10 * calls_of_few


# -- a protocol without rounds -----------------------------------------------------------------------------------------


class Applied(NamedTuple):
    client: int
    staleness: int
    at_s: float
    away_s: float


def asynchronous(clock: Clock, seconds: dict[int, Any], updates: int) -> list[Applied]:
    """Each client is sent out again when it is back, with the version of then; a lost one's slot is filled again."""
    inbox, applied = Inbox(clock), list[Applied]()

    def visit(client: int, version: int) -> Generator[Event, Any, tuple[int, int, float]]:
        for_s = next(seconds[client])
        yield clock.timeout(abs(for_s))
        if for_s < 0:
            raise Lost("on the way")
        return client, version, for_s

    def send_out(client: int) -> None:
        inbox.expect(Trip(clock, visit(client, len(applied)), of=client), order=client)

    def loop() -> Generator[Event, Any, None]:
        for client in seconds:
            send_out(client)
        while len(applied) < updates:
            arrival = yield from inbox.next()
            if not arrival.lost:
                client, version, away_s = arrival.value
                applied.append(Applied(client, len(applied) - version, clock.now, away_s))
            assert len(inbox.under_way) < len(seconds)
            send_out(arrival.journey.of)

    clock.run(until=clock.process(loop()))
    return applied


def test_a_fast_and_a_slow_client_take_turns_by_their_index(clock: Clock) -> None:
    """Of 1 s and 3 s: every third time both are back in one instant, and what the slow one brings is three behind."""
    applied = asynchronous(clock, {0: itertools.repeat(1.0), 1: itertools.repeat(3.0)}, 10)
    assert " ".join(f"{'AB'[one.client]}{one.staleness}" for one in applied) == "A0 A0 A0 B3 A1 A0 A0 B3 A1 A0"


@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_littles_law_holds_for_those_who_are_away(clock: Clock, lost: float) -> None:
    """Eight at work: arrivals per second times seconds away. So each update is as old as seven others make it."""
    rng, away_s = np.random.default_rng(1), list[float]()

    def exponential() -> Generator[float, None, None]:
        while True:
            away_s.append(rng.exponential(1.0))
            yield -away_s[-1] if rng.random() < lost else away_s[-1]

    applied = asynchronous(clock, {client: exponential() for client in range(8)}, 8_000)
    assert sum(away_s) / clock.now == pytest.approx(8, rel=0.02)
    assert len(applied) / clock.now == pytest.approx(8 * (1 - lost), rel=0.05)
    assert np.mean([one.staleness for one in applied]) == pytest.approx(7 * (1 - lost), rel=0.05)
