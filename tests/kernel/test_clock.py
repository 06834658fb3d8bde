"""The clock processes the same events in the same order as SimPy's own environment; alarms ring once, or never."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy import AnyOf, Environment, Event, Interrupt, Process
from simpy.core import EmptySchedule
from simpy.events import URGENT
from tiers import drawn

from fedsim.kernel.clock import Alarm, Clock, happen
from fedsim.kernel.gather import at_the_end_of, gather


class Crowded(Clock):
    """Its heap is full at once."""

    MOST_NEAR = 2


Deed = tuple[str, float]
Program = list[list[Deed]]

delays = st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.5, 1e-300, 2.0])
deeds = st.tuples(st.sampled_from(["wait", "alarm", "last", "start", "interrupt", "succeed", "either"]), delays)
programs: st.SearchStrategy[Program] = st.lists(st.lists(deeds, max_size=6), min_size=1, max_size=6)


def log_of(env: Environment, program: Program) -> list[tuple[float, str]]:
    """What happens, in order, when each list of deeds is a process."""
    log: list[tuple[float, str]] = []
    processes: list[Process] = []

    def note(what: str) -> None:
        log.append((env.now, what))

    def live(name: str, deeds: list[Deed]) -> Generator[Event, Any, None]:
        note(f"{name} begins")
        for number, (deed, delay_s) in enumerate(deeds):
            where = f"{name}.{number} {deed}"
            try:
                if deed == "wait":
                    yield env.timeout(delay_s)
                elif deed == "alarm":
                    Alarm(env, delay_s, lambda _, where=where: note(f"{where} rings"))
                elif deed == "last":
                    yield at_the_end_of(env, delay_s)
                elif deed == "start":
                    processes.append(env.process(live(f"{where}/child", [("wait", delay_s)])))
                elif deed == "interrupt":
                    others = [one for one in processes if one.is_alive and one is not env.active_process]
                    if others:
                        others[0].interrupt(where)
                elif deed == "succeed":
                    event = env.event()
                    Alarm(env, delay_s, lambda _, event=event: happen(event, 1))
                    yield event
                else:
                    yield AnyOf(env, [env.timeout(delay_s), env.timeout(1.0)])
            except Interrupt as interrupt:
                note(f"{where} interrupted by {interrupt.cause}")
            note(where)

    processes += [env.process(live(str(number), deeds)) for number, deeds in enumerate(program)]
    done = gather(env, list(processes), deadline_s=1.5)
    done.callbacks.append(lambda _: note("gathered"))
    env.run()
    return log


@drawn(300)
@given(program=programs, start_s=st.sampled_from([0.0, 1e8]))
def test_everything_happens_in_simpys_order(program: Program, start_s: float) -> None:
    expected = log_of(Environment(start_s), program)
    assert log_of(Clock(start_s), program) == expected
    assert log_of(Crowded(start_s), program) == expected


def test_what_happens_at_once_is_never_in_the_heap() -> None:
    clock = Clock()
    clock.timeout(1.0)
    clock.process(log_forever(clock))
    for _ in range(1_000):
        clock.step()
    assert clock.now == 0.0
    assert len(clock._queue) == 1


def log_forever(clock: Clock) -> Generator[Event, Any, None]:
    while True:
        yield clock.timeout(0.0)


@pytest.mark.parametrize("env", [Environment(), Clock()])
def test_what_was_urgent_before_stays_ahead_of_what_is_urgent_now(env: Environment) -> None:
    log = []

    def urgent(name: str, delay_s: float = 0.0) -> Event:
        event = env.event()
        event._ok, event._value = True, None
        event.callbacks.append(lambda _: log.append(name))
        env.schedule(event, URGENT, delay_s)
        return event

    urgent("first", 1.0).callbacks.append(lambda _: urgent("third"))
    urgent("second", 1.0)
    env.run()
    assert log == ["first", "second", "third"]


def test_what_is_far_ahead_comes_in_its_order() -> None:
    clock, log = Crowded(), []
    for number in range(100):
        Alarm(clock, 1.0 + number * 37 % 100, lambda _: log.append(clock.now))
    clock.run()
    assert log == [1.0 + number for number in range(100)]


def test_the_next_event_can_be_foreseen() -> None:
    clock = Clock()
    assert clock.peek() == math.inf
    clock.timeout(2.0)
    assert clock.peek() == 2.0
    clock.timeout(0.0)
    assert clock.peek() == 0.0
    clock.run()
    assert (clock.now, clock.peek()) == (2.0, math.inf)
    with pytest.raises(EmptySchedule):
        clock.step()


def test_a_simulation_that_was_stopped_goes_on_where_it_was() -> None:
    clock, log = Clock(), []
    event = clock.event()
    event.callbacks.append(lambda _: log.append("first"))
    clock.timeout(1.0).callbacks.append(lambda _: event.succeed("stop"))
    later = clock.timeout(1.0)
    later.callbacks.append(lambda _: log.append("later"))
    assert clock.run(until=event) == "stop"
    event_log = list(log)
    clock.run()
    assert (event_log, log) == (["later", "first"], ["later", "first"])


def test_a_failure_that_nobody_waits_for_is_raised() -> None:
    clock = Clock()
    clock.event().fail(ValueError("lost"))
    with pytest.raises(ValueError, match="lost"):
        clock.run()


def test_an_alarm_rings_once_and_carries_what_it_was_given() -> None:
    clock, rung = Clock(), []
    Alarm(clock, 3.0, lambda alarm: rung.append((clock.now, alarm.of)), "cell 1")
    clock.run()
    assert rung == [(3.0, "cell 1")]


def test_an_alarm_that_was_stopped_never_rings() -> None:
    clock = Clock()
    Alarm(clock, 3.0, lambda _: pytest.fail("it rang")).stop()
    clock.run()
    assert clock.now == 3.0


def test_what_happens_now_wakes_those_who_wait_before_anything_else() -> None:
    clock, log = Clock(), []
    event = clock.event()

    def waiting() -> Generator[Event, Any, None]:
        log.append((yield event))

    clock.process(waiting())
    Alarm(clock, 1.0, lambda _: happen(event, "now"))
    Alarm(clock, 1.0, lambda _: log.append("next"))
    clock.run()
    assert log == ["now", "next"]
    assert event.processed and event.ok
