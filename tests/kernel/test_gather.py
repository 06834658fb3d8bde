"""Waiting for journeys: what has arrived by the deadline, what was lost, what is late."""

from __future__ import annotations

import math
import weakref
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy import Environment, Event

from fedsim.kernel.gather import Gathered, Lost, at_the_end_of, gather


@pytest.fixture
def env() -> Environment:
    return Environment()


def arriving(env: Environment, after_s: float, value: Any = None) -> Generator[Event, Any, Any]:
    yield env.timeout(after_s)
    return value


def lost(env: Environment, after_s: float) -> Generator[Event, Any, None]:
    yield env.timeout(after_s)
    raise Lost("on its way")


def broken(env: Environment, after_s: float) -> Generator[Event, Any, None]:
    yield env.timeout(after_s)
    raise ZeroDivisionError("a mistake in the simulation")


def gathered(env: Environment, *journeys: Generator[Event, Any, Any], **until: Any) -> Gathered:
    result = env.run(until=gather(env, [env.process(journey) for journey in journeys], **until))
    assert isinstance(result, Gathered)
    return result


def test_without_a_deadline_it_waits_for_the_slowest(env: Environment) -> None:
    result = gathered(env, arriving(env, 3.0, "c"), arriving(env, 1.0, "a"), lost(env, 2.0))
    assert (result.arrived, len(result.lost), len(result.late), env.now) == (["c", "a"], 1, 0, 3.0)


def test_values_are_in_the_order_of_departure_not_of_arrival(env: Environment) -> None:
    assert gathered(env, *(arriving(env, 9.0 - i, i) for i in range(9))).arrived == list(range(9))


def test_a_journey_that_ends_exactly_at_the_deadline_has_arrived(env: Environment) -> None:
    result = gathered(env, arriving(env, 5.0, "just in time"), deadline_s=5.0)
    assert (result.arrived, result.late, env.now) == (["just in time"], [], 5.0)


def test_a_journey_that_ends_next_after_the_deadline_is_late(env: Environment) -> None:
    result = gathered(env, arriving(env, math.nextafter(5.0, 6.0)), deadline_s=5.0)
    assert (result.arrived, len(result.late), env.now) == ([], 1, 5.0)


@pytest.mark.parametrize("links", [1, 10, 1000])
def test_an_arrival_by_a_chain_of_events_in_the_deadlines_instant_counts(env: Environment, links: int) -> None:
    def chain() -> Generator[Event, Any, str]:
        yield env.timeout(5.0)
        for _ in range(links):
            yield env.timeout(0.0)
            yield env.process(arriving(env, 0.0))
        return "just in time"

    assert gathered(env, chain(), deadline_s=5.0).arrived == ["just in time"]


def test_the_deadline_is_counted_from_when_the_waiting_begins(env: Environment) -> None:
    env.run(until=100.0)
    result = gathered(env, arriving(env, 5.0, "a"), arriving(env, 6.0), deadline_s=5.0)
    assert (result.arrived, len(result.late), env.now) == (["a"], 1, 105.0)


def test_an_infinite_deadline_is_no_deadline(env: Environment) -> None:
    result = gathered(env, arriving(env, 1e9, "a"), deadline_s=math.inf)
    assert (result.arrived, env.now) == (["a"], 1e9)


def test_it_happens_as_soon_as_enough_have_arrived(env: Environment) -> None:
    result = gathered(env, arriving(env, 3.0, "c"), arriving(env, 1.0, "a"), arriving(env, 2.0, "b"), count=2)
    assert (result.arrived, len(result.late), env.now) == (["a", "b"], 1, 2.0)


def test_a_lost_journey_does_not_count_as_one_that_is_wanted(env: Environment) -> None:
    result = gathered(env, lost(env, 1.0), arriving(env, 2.0, "b"), arriving(env, 3.0, "c"), count=2)
    assert (result.arrived, len(result.lost), result.late, env.now) == (["b", "c"], 1, [], 3.0)


def test_it_does_not_wait_for_more_than_can_still_arrive(env: Environment) -> None:
    result = gathered(env, lost(env, 1.0), arriving(env, 2.0, "b"), count=5, deadline_s=50.0)
    assert (result.arrived, len(result.lost), env.now) == (["b"], 1, 2.0)


def test_when_all_are_lost_it_is_over_with_the_last_loss(env: Environment) -> None:
    result = gathered(env, lost(env, 1.0), lost(env, 4.0), deadline_s=50.0)
    assert (result.arrived, len(result.lost), result.late, env.now) == ([], 2, [], 4.0)


def test_nobody_is_gathered_at_once(env: Environment) -> None:
    assert gathered(env, deadline_s=5.0) == Gathered([], [], [])
    assert env.now == 0.0


def test_any_other_failure_fails_the_waiting(env: Environment) -> None:
    with pytest.raises(ZeroDivisionError, match="a mistake in the simulation"):
        gathered(env, arriving(env, 1.0), broken(env, 2.0), arriving(env, 3.0))
    assert env.now == 2.0

    def caught() -> Generator[Event, Any, None]:
        with pytest.raises(ZeroDivisionError):
            yield gather(env, [env.process(broken(env, 1.0)), env.process(arriving(env, 2.0))], deadline_s=5.0, count=1)

    env.process(caught())
    env.run()
    assert env.now == 7.0, "nothing else is raised, and nothing more is gathered"


def test_a_failure_after_the_deadline_stops_the_simulation(env: Environment) -> None:
    gathered(env, broken(env, 2.0), deadline_s=1.0)
    with pytest.raises(ZeroDivisionError):
        env.run()


def test_a_loss_after_the_deadline_stops_nothing(env: Environment) -> None:
    assert len(gathered(env, lost(env, 2.0), deadline_s=1.0).late) == 1
    env.run()
    assert env.now == 2.0


class Result:
    """Something that takes memory."""


def test_a_late_journey_keeps_no_other_result_alive(env: Environment) -> None:
    journeys = [env.process(arriving(env, 1.0, Result())), env.process(arriving(env, 9.0))]
    result = env.run(until=gather(env, journeys, deadline_s=5.0))
    (value,), (late,) = result.arrived, result.late
    watched = weakref.ref(value)
    del value, journeys, result  # what is left is the late journey, and whatever it keeps
    env.run(until=6.0)  # SimPy itself holds on to what it ran until, for a moment
    assert watched() is None
    assert late.is_alive


def test_a_deadline_still_to_come_keeps_no_result_alive(env: Environment) -> None:
    result = env.run(until=gather(env, [env.process(arriving(env, 1.0, Result()))], deadline_s=1e6))
    watched = weakref.ref(result.arrived[0])
    del result
    env.run(until=2.0)
    assert watched() is None
    env.run()
    assert env.now == 1e6


endings = st.tuples(st.sampled_from(["arrives", "is lost"]), st.integers(0, 6))


@given(
    journeys=st.lists(endings, max_size=8),
    deadline_s=st.none() | st.integers(0, 6),
    count=st.none() | st.integers(1, 9),
)
def test_every_journey_is_arrived_lost_or_late_by_its_time_alone(
    journeys: list[tuple[str, int]], deadline_s: int | None, count: int | None
) -> None:
    env = Environment()
    started = [
        env.process(arriving(env, after_s, number) if how == "arrives" else lost(env, after_s))
        for number, (how, after_s) in enumerate(journeys)
    ]
    result = env.run(until=gather(env, started, deadline_s=deadline_s, count=count))

    arrivals = sorted(after_s for how, after_s in journeys if how == "arrives")
    ends = [math.inf if deadline_s is None else deadline_s, max((after_s for _, after_s in journeys), default=0)]
    if count is not None and len(arrivals) >= count:
        ends.append(arrivals[count - 1])
    assert env.now == min(ends)

    def ended(how: str, by: str) -> list[int]:
        before = {"surely": lambda s: s < env.now, "perhaps": lambda s: s <= env.now}[by]
        return [number for number, (kind, after_s) in enumerate(journeys) if kind == how and before(after_s)]

    numbers = {process: number for number, process in enumerate(started)}
    for how, found in (("arrives", result.arrived), ("is lost", [numbers[process] for process in result.lost])):
        assert found == sorted(found)
        assert set(ended(how, "surely")) <= set(found) <= set(ended(how, "perhaps"))
    if count is None:
        assert result.arrived == ended("arrives", "perhaps")
    else:
        assert len(result.arrived) <= count
    assert len(result.arrived) + len(result.lost) + len(result.late) == len(journeys)


def test_the_end_of_an_instant_comes_after_all_that_happens_in_it(env: Environment) -> None:
    seen = []

    def note(what: str, event: Event) -> Generator[Event, Any, None]:
        yield event
        seen.append((what, env.now))

    env.process(note("the end", at_the_end_of(env, 1.0)))
    env.process(note("what came later in the queue", env.timeout(1.0)))
    env.run()
    assert seen == [("what came later in the queue", 1.0), ("the end", 1.0)]


def test_the_end_of_a_run_comes_after_the_deadlines_of_its_instant_and_what_they_cause(env: Environment) -> None:
    end = at_the_end_of(env, 5.0, after=1)  # asked for first, like the end of a run
    seen = []

    def waiter() -> Generator[Event, Any, None]:
        yield gather(env, [env.process(arriving(env, 9.0))], deadline_s=5.0)
        yield env.timeout(0.0)
        seen.append(env.now)

    env.process(waiter())
    env.run(until=end)
    assert seen == [5.0]
