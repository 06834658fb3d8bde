"""Channels: who sends when, alone and against others, and what cancelling frees."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpy import Environment

from fedsim.network.disciplines.channel import Channel, Flow
from fedsim.network.disciplines.dedicated import Dedicated, DedicatedChannel
from fedsim.network.disciplines.serial import Serial, SerialChannel


@pytest.fixture
def env() -> Environment:
    return Environment()


def sent_at(env: Environment, channel: Channel, offers: list[tuple[float, float]]) -> list[float]:
    """When each message has been sent; *offers* are times and airtimes, in the order of the times."""
    ends = [math.nan] * len(offers)

    def note(number: int) -> None:
        ends[number] = env.now

    for number, (at_s, airtime_s) in enumerate(offers):
        if at_s > env.now:
            env.run(until=env.timeout(at_s - env.now))
        channel.start(airtime_s).callbacks.append(lambda _, number=number: note(number))
    env.run()
    return ends


times = st.integers(0, 20)


@given(st.lists(st.tuples(times, times), max_size=12).map(sorted))
def test_serial_sends_in_the_order_of_arrival_without_gaps(offers: list[tuple[int, int]]) -> None:
    expected, free_s = [], 0
    for at_s, airtime_s in offers:
        free_s = max(at_s, free_s) + airtime_s
        expected.append(free_s)
    env = Environment()
    assert sent_at(env, SerialChannel(env), offers) == expected


@given(st.lists(st.tuples(times, times), max_size=12).map(sorted))
def test_dedicated_sends_each_at_once(offers: list[tuple[int, int]]) -> None:
    env = Environment()
    assert sent_at(env, DedicatedChannel(env), offers) == [at_s + airtime_s for at_s, airtime_s in offers]


def test_serial_keeps_the_order_of_messages_offered_in_one_instant(env: Environment) -> None:
    assert sent_at(env, SerialChannel(env), [(0, 3), (0, 1), (0, 0), (0, 2)]) == [3, 4, 4, 6]


def test_waiting_and_progress_can_be_read_at_any_time(env: Environment) -> None:
    channel = SerialChannel(env)
    first, second = channel.start(4.0), channel.start(2.0)
    env.run(until=1.0)
    assert (first.queued_s, second.queued_s) == (0.0, 1.0)
    assert (channel.sent(first), channel.sent(second)) == (0.25, 0.0)
    env.run(until=5.0)
    assert (first.queued_s, second.queued_s) == (0.0, 4.0)
    assert (channel.sent(first), channel.sent(second)) == (1.0, 0.5)
    env.run()
    assert (second.queued_s, channel.sent(second)) == (4.0, 1.0)


def never_happens(flow: Flow) -> None:
    flow.callbacks.append(lambda _: pytest.fail("a cancelled message was sent"))


@pytest.fixture
def three(env: Environment) -> tuple[SerialChannel, list[Flow]]:
    channel = SerialChannel(env)
    return channel, [channel.start(4.0), channel.start(2.0), channel.start(1.0)]


def test_cancelling_in_the_queue_moves_up_those_behind(
    env: Environment, three: tuple[SerialChannel, list[Flow]]
) -> None:
    channel, (first, second, third) = three
    never_happens(second)
    env.run(until=3.0)
    channel.cancel(second)
    env.run(until=third)
    assert env.now == 5.0
    assert first.processed
    env.run()


def test_cancelling_what_is_being_sent_frees_the_channel_at_once(
    env: Environment, three: tuple[SerialChannel, list[Flow]]
) -> None:
    channel, (first, second, third) = three
    never_happens(first)
    env.run(until=3.0)
    assert channel.sent(first) == 0.75
    channel.cancel(first)
    env.run(until=second)
    assert (env.now, second.queued_s) == (5.0, 3.0)
    env.run(until=third)
    assert env.now == 6.0
    env.run()


def test_cancelling_in_the_instant_of_its_end_frees_the_channel_once(env: Environment) -> None:
    channel = SerialChannel(env)
    ends = env.timeout(4.0)  # before the message's own end in the same instant
    first, second, third = channel.start(4.0), channel.start(2.0), channel.start(1.0)
    never_happens(first)
    ends.callbacks.append(lambda _: channel.cancel(first))
    env.run(until=second)
    assert env.now == 6.0
    env.run(until=third)
    assert env.now == 7.0


def test_a_channel_is_free_after_everything_was_cancelled(
    env: Environment, three: tuple[SerialChannel, list[Flow]]
) -> None:
    channel, flows = three
    env.run(until=1.0)
    for flow in flows:
        never_happens(flow)
        channel.cancel(flow)
    late = channel.start(1.0)
    env.run(until=late)
    assert (env.now, late.queued_s) == (2.0, 0.0)
    env.run()


def test_cancelling_a_dedicated_message_disturbs_nobody(env: Environment) -> None:
    channel = DedicatedChannel(env)
    first, second = channel.start(4.0), channel.start(2.0)
    never_happens(first)
    env.run(until=1.0)
    channel.cancel(first)
    assert channel.sent(first) == 0.25
    env.run(until=second)
    assert env.now == 2.0
    env.run()


@pytest.mark.parametrize(("discipline", "channel"), [(Serial(), SerialChannel), (Dedicated(), DedicatedChannel)])
def test_a_discipline_names_its_channel(discipline: Serial | Dedicated, channel: type[Channel]) -> None:
    assert discipline.channel is channel
