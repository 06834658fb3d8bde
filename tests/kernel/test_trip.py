"""A trip goes from event to event as a SimPy process does, and ends, fails and is interrupted at once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Generator
from typing import Any

import pytest
from simpy import Event, Interrupt

from fedsim.kernel.alarm import Alarm, happen
from fedsim.kernel.clock import Clock
from fedsim.kernel.trip import Abandoned, Lost, Trip


def test_it_begins_at_once_and_returns_what_its_generator_does() -> None:
    clock, log = Clock(), []

    def walk() -> Generator[Event, Any, str]:
        log.append("begun")
        log.append((yield clock.timeout(2.0, "two")))
        return "home"

    trip = Trip(walk())
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

    trip = Trip(walk())
    Alarm(clock, 1.0, lambda _: happen(event, Lost("on the way"), ok=False))
    clock.run()
    assert trip.value == "lost: on the way"


def test_a_failure_that_nobody_takes_care_of_is_raised() -> None:
    clock = Clock()

    def walk() -> Generator[Event, Any, None]:
        yield clock.timeout(1.0)
        raise ValueError("a mistake")

    Trip(walk())
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

    trip = Trip(walk())
    trip.interrupt("too late")
    assert (work.given_up, work.callbacks, trip.value) == (True, [], "abandoned: too late")


def test_an_interruption_of_a_wait_is_simpys_own() -> None:
    clock = Clock()

    def walk() -> Generator[Event, Any, str]:
        try:
            yield clock.timeout(5.0)
        except Interrupt as interrupt:
            return str(interrupt.cause)
        return "done"

    trip = Trip(walk())
    trip.interrupt("asked again")
    assert trip.value == "asked again"


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
        trip = Trip(walk(model))
        trip.defused = True
        del model
        happen(event, Lost("on the way"), ok=False)
        assert isinstance(trip.value, Lost)
        assert seen() is None
    finally:
        gc.enable()
    assert clock.now == 0.0
