"""A trip goes from event to event as a SimPy process does, and ends, fails and is interrupted at once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Generator
from typing import Any

import pytest
from simpy import Event

from fedsim.kernel.clock import Alarm, Clock, happen
from fedsim.kernel.gather import Gathered, gather, give_up
from fedsim.kernel.trip import Abandoned, Lost, Trip


def test_it_begins_at_once_and_returns_what_its_generator_does() -> None:
    clock, log = Clock(), []

    def walk() -> Generator[Event, Any, str]:
        log.append("begun")
        log.append((yield clock.timeout(2.0, "two")))
        return "home"

    trip = Trip(clock, walk())
    assert (log, trip.is_alive, trip.processed) == (["begun"], True, False)
    clock.run()
    assert (log, trip.is_alive, trip.processed, trip.ok, trip.value) == (["begun", "two"], False, True, True, "home")


@pytest.mark.parametrize("listening", [True, False], ids=["while it waits", "before it waits"])
def test_an_event_that_failed_is_raised_in_it_whenever_it_asks(listening: bool) -> None:
    clock, event = Clock(), Event(Clock())
    event.callbacks = []

    def walk() -> Generator[Event, Any, str]:
        if not listening:
            yield clock.timeout(2.0)
        try:
            yield event
        except Lost as lost:
            return f"lost: {lost}"
        return "arrived"

    trip = Trip(clock, walk())
    Alarm(clock, 1.0, lambda _: happen(event, Lost("on the way"), ok=False))
    clock.run()
    assert trip.value == "lost: on the way"


def test_a_failure_that_nobody_takes_care_of_is_raised() -> None:
    clock = Clock()

    def walk() -> Generator[Event, Any, None]:
        yield clock.timeout(1.0)
        raise ValueError("a mistake")

    Trip(clock, walk())
    with pytest.raises(ValueError, match="a mistake"):
        clock.run()


class Work(Event):
    """Something that can be given up."""

    given_up = False

    def give_up(self) -> None:
        self.given_up = True


def test_an_interruption_gives_up_what_it_waits_for() -> None:
    clock = Clock()
    work = Work(clock)

    def walk() -> Generator[Event, Any, str]:
        try:
            yield work
        except Abandoned as abandoned:
            return f"abandoned: {abandoned}"
        return "done"

    trip = Trip(clock, walk())
    trip.interrupt("too late")
    assert (work.given_up, work.callbacks, trip.value) == (True, [], "abandoned: too late")


def waiting_for(what: Any) -> Generator[Event, Any, str]:
    """Says how its wait has ended."""
    try:
        yield what
    except Abandoned as abandoned:
        return f"abandoned: {abandoned}"
    return "done"


@pytest.mark.parametrize(
    "what",
    [
        lambda clock: clock.timeout(5.0),
        lambda clock: clock.event(),
        lambda clock: clock.process(waiting_for(clock.timeout(5.0))),
        lambda clock: Trip(clock, waiting_for(clock.timeout(5.0))),
        lambda clock: gather(clock, [Trip(clock, waiting_for(clock.timeout(5.0)))]),
    ],
    ids=["timeout", "event", "process", "trip", "gathering"],
)
def test_an_interruption_is_the_same_whatever_it_waits_for(what: Callable[[Clock], Any]) -> None:
    clock = Clock()
    trip = Trip(clock, waiting_for(what(clock)))
    clock.timeout(1.0).callbacks.append(lambda _: give_up([trip], "too late"))
    clock.run()
    assert trip.value == "abandoned: too late"


def test_an_interruption_reaches_all_that_its_waits_have_started() -> None:
    clock = Clock()
    works = [Work(clock) for _ in range(4)]

    def alone(work: Work) -> Generator[Event, Any, None]:
        yield work

    def several() -> Generator[Event, Any, Gathered]:
        return (yield gather(clock, [Trip(clock, alone(work)) for work in works[:3]]))

    def outermost() -> Generator[Event, Any, None]:
        yield Trip(clock, several())

    trip = Trip(clock, outermost())
    happen(works[0])
    with pytest.raises(Abandoned, match="too late"):
        trip.interrupt("too late")
        clock.run()
    assert [work.given_up for work in works] == [False, True, True, False]


@pytest.mark.parametrize("seconds", [0.0, 1.0], ids=["at once", "later"])
def test_a_mistake_of_one_that_was_given_up_is_not_hidden(seconds: float) -> None:
    clock = Clock()

    def mistaken() -> Generator[Event, Any, None]:
        try:
            yield clock.timeout(5.0)
        except Abandoned:
            if seconds:
                yield clock.timeout(seconds)
            raise ZeroDivisionError("a mistake") from None

    Trip(clock, waiting_for(Trip(clock, mistaken()))).interrupt("too late")
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        clock.run()


def test_who_was_late_is_given_up_too_where_nobody_has_heard_of_it() -> None:
    """The deadline has passed, and in the same instant who waited for it is interrupted."""
    clock, work = Clock(), Work(Clock())

    def alone() -> Generator[Event, Any, None]:
        yield work

    gathering = gather(clock, [Trip(clock, alone())], deadline_s=1.0)
    trip = Trip(clock, waiting_for(gathering))
    while not gathering.triggered:
        clock.step()
    trip.interrupt("too late")
    clock.run()
    assert (work.given_up, trip.value) == (True, "abandoned: too late")


def failing(failure: Exception) -> Generator[Event, Any, None]:
    raise failure
    yield


@pytest.mark.parametrize("failure", [Lost("nobody there"), ZeroDivisionError("a mistake")])
def test_one_that_fails_at_once_has_failed_and_not_its_maker(failure: Exception) -> None:
    clock = Clock()
    trip = Trip(clock, failing(failure), of="somebody")
    assert (trip.is_alive, trip.processed, trip.ok, trip.value, trip.defused) == (False, True, False, failure, False)
    clock.timeout(0.0).callbacks.append(lambda _: pytest.fail("the run went on"))
    with pytest.raises(type(failure), match=str(failure)) as raised:
        clock.run()
    assert raised.value is failure


def test_one_that_fails_at_once_may_still_be_waited_for() -> None:
    """By another trip, by a process, or with others."""
    clock, log = Clock(), list[str]()

    def caught() -> Generator[Event, Any, None]:
        try:
            yield Trip(clock, failing(Lost("nobody there")))
        except Lost as lost:
            log.append(str(lost))

    Trip(clock, caught())
    clock.process(caught())
    gathered = gather(clock, [Trip(clock, failing(Lost())), Trip(clock, waiting_for(clock.timeout(1.0)))])
    clock.run()
    assert log == ["nobody there"] * 2
    assert (gathered.value.arrived, len(gathered.value.lost)) == (["done"], 1)


@pytest.mark.parametrize("how", ["it goes on", "it is interrupted", "what it waits for fails"])
def test_a_failure_is_raised_in_nobody_who_only_caused_it(how: str) -> None:
    """Whoever calls gets back to work, and the failure ends the run as the next thing that happens."""
    clock, event, log = Clock(), Event(Clock()), list[str]()

    def walk() -> Generator[Event, Any, None]:
        yield event
        raise Lost("on the way")

    trip = Trip(clock, walk())

    def cause(_: Any) -> None:
        if how == "it is interrupted":
            trip.interrupt("too late")
        else:
            happen(event, Lost("elsewhere"), ok=False) if how == "what it waits for fails" else happen(event)
        log.append("caused")

    Alarm(clock, 1.0, cause)
    Alarm(clock, 1.0, lambda _: log.append("went on"))
    with pytest.raises(Lost):
        clock.run()
    assert log == ["caused"]


def test_the_end_of_a_run_hides_no_failure() -> None:
    """It is the next event of the instant already."""
    clock, end = Clock(), Event(Clock())
    end.callbacks = []

    def last_deed(_: Any) -> None:
        clock.schedule(end)
        Trip(clock, failing(ValueError("a mistake")))

    end._ok, end._value = True, None
    Alarm(clock, 1.0, last_deed)
    with pytest.raises(ValueError, match="a mistake"):
        clock.run(until=end)


def test_a_lost_journey_keeps_nothing_alive_that_it_knew() -> None:
    class Model:
        pass

    clock, event = Clock(), Event(Clock())
    model = Model()
    seen = weakref.ref(model)

    def walk(model: Model) -> Generator[Event, Any, None]:
        yield event
        assert model

    gc.disable()
    try:
        trip = Trip(clock, walk(model))
        trip.defused = True
        del model
        happen(event, Lost("on the way"), ok=False)
        assert isinstance(trip.value, Lost)
        assert seen() is None
    finally:
        gc.enable()
    assert clock.now == 0.0
