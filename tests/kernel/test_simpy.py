"""What `fedsim.kernel` relies on inside of SimPy: private fields and orders that another version may change.

Should a test fail here, look at what it names before SimPy's version in setup.cfg goes up. `test_clock.py` compares the
order of events with SimPy's own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from typing import Any

import pytest
from simpy import Environment, Event, Interrupt, Process, Timeout
from simpy.core import EmptySchedule, StopSimulation
from simpy.events import NORMAL, PENDING, URGENT

from fedsim.kernel.clock import Clock
from fedsim.kernel.gather import LAST_IN_ITS_INSTANT


def test_the_environment_keeps_its_events_in_one_heap_of_time_priority_number_and_event() -> None:
    """`Clock` has the same heap for the near ones, and its own ``now`` beside ``_now``."""
    environment = Environment(2.0)
    assert vars(environment).keys() >= {"_now", "_queue", "_eid"}
    assert isinstance(environment._eid, itertools.count) and environment._now == environment.now == 2.0
    timeout = environment.timeout(3.0)
    assert environment._queue == [(5.0, NORMAL, 0, timeout)]
    environment.step()
    assert (environment._now, environment._queue) == (5.0, [])
    with pytest.raises(EmptySchedule):
        environment.step()


def test_priorities_are_two_and_smaller_ones_go_first() -> None:
    """Between them there is no place, and `at_the_end_of` comes behind both."""
    assert (URGENT, NORMAL, LAST_IN_ITS_INSTANT) == (0, 1, 2)


@pytest.mark.parametrize("environment", [Environment, Clock])
def test_all_is_scheduled_by_the_one_method_that_the_clock_replaces(environment: type[Environment]) -> None:
    seen: list[tuple[str, int]] = []

    class Watched(environment):  # type: ignore[misc, valid-type]
        def schedule(self, event: Event, priority: Any = NORMAL, delay: float = 0.0) -> None:
            seen.append((type(event).__name__, priority))
            super().schedule(event, priority, delay)

    def walk(env: Environment) -> Generator[Event, Any, None]:
        with pytest.raises(Interrupt):
            yield env.timeout(1.0)

    watched = Watched()
    watched.event().succeed()
    watched.process(walk(watched)).interrupt()
    watched.run(until=2.0)
    made = [("Event", NORMAL), ("Initialize", URGENT), ("Interruption", URGENT), ("Event", URGENT)]
    assert seen == [*made, ("Timeout", NORMAL), ("Process", NORMAL), ("Event", -1)]  # what stopped it is put back


def test_an_event_is_its_callbacks_its_outcome_and_its_value() -> None:
    """`happen`, `at_the_end_of`, `gather` and `Trip` set these, and read them; `Alarm`, `Transfer` and `LocalWork` have
    ``callbacks`` and ``_ok`` and are scheduled like events."""
    event = Event(Environment())
    assert vars(event).keys() == {"env", "callbacks"} and event.callbacks == [] and event._value is PENDING
    event._ok, event._value = True, 1
    assert event.triggered and event.ok and event.value == 1 and not event.processed
    event.callbacks = None  # type: ignore[assignment]
    assert event.processed
    assert not event.defused and not hasattr(event, "_defused")
    event.defused = True
    assert event._defused


@pytest.mark.parametrize("environment", [Environment, Clock])
def test_a_step_takes_the_callbacks_away_calls_them_and_raises_what_is_not_defused(
    environment: Callable[[], Environment],
) -> None:
    """It needs no more of what was scheduled than ``callbacks``, ``_ok`` and, after a failure, ``_value``."""

    class Least:
        __slots__ = ("_defused", "_ok", "_value", "callbacks")

    env, seen = environment(), []
    scheduled = Least()
    scheduled.callbacks, scheduled._ok = (lambda event: seen.append(event.callbacks),), True
    env.schedule(scheduled)  # type: ignore[arg-type]
    env.step()
    assert seen == [None]
    for defused in (True, False):
        failed = Least()
        failed.callbacks, failed._ok, failed._value = (), False, ValueError("lost")
        if defused:
            failed._defused = True
        env.schedule(failed)  # type: ignore[arg-type]
    env.step()
    with pytest.raises(ValueError, match="lost"):
        env.step()


@pytest.mark.parametrize("environment", [Environment, Clock])
def test_a_run_is_stopped_from_within_a_callback_and_goes_on_behind_it(
    environment: Callable[[], Environment],
) -> None:
    """`StopSimulation` comes out of a step; what the event has left to call is the first to be called later."""
    env, log = environment(), list[str]()
    event = env.event().succeed("the end")
    env.event().succeed().callbacks.append(lambda _: log.append("next"))
    event.callbacks += [StopSimulation.callback, lambda _: log.append("left")]
    with pytest.raises(StopSimulation, match="the end"):
        env.step()
    env.run()
    assert log == ["left", "next"]


def test_a_process_asks_what_it_waits_for_as_a_trip_does() -> None:
    """It appends its ``_resume``, reads ``_ok`` and ``_value`` and sets ``_defused``; so it may wait for a `Trip`,
    which is no event. An interruption takes ``_resume`` away again."""

    class Least:
        __slots__ = ("_defused", "_ok", "_value", "callbacks")

    env, caught = Environment(), []
    waited, given_up, ended = (Least() for _ in range(3))
    waited.callbacks, waited._ok, waited._value = [], False, ValueError("on the way")
    given_up.callbacks = []
    ended.callbacks, ended._ok, ended._value = None, True, "at home"

    def walk() -> Any:
        for least in (waited, given_up, ended):
            try:
                caught.append((yield least))
            except (ValueError, Interrupt) as failure:
                caught.append(str(failure))

    process = env.process(walk())
    env.step()
    assert isinstance(process, Process) and waited.callbacks == [process._resume]
    waited.callbacks[0](waited)
    assert waited._defused and given_up.callbacks == [process._resume]
    process.interrupt("too late")
    env.run()
    assert given_up.callbacks == []
    assert caught == ["on the way", "Interrupt('too late')", "at home"]


def test_a_timeout_has_happened_as_far_as_its_fields_say() -> None:
    """So `Trip` must look at ``callbacks``, and not at the value, to know whether it has to wait."""
    timeout = Timeout(Environment(), 1.0)
    assert timeout._ok and timeout.triggered and timeout.callbacks is not None
