"""Channels: who sends when, alone and against others, and what stopping, pausing and another rate do to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flows import CHANNELS, Note, at, put
from hypothesis import given
from hypothesis import strategies as st
from simpy import Environment

from fedsim import registry
from fedsim.network.disciplines.channel import Channel, Discipline, Progress
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.disciplines.serial import SerialChannel

NOTHING, ALL = 0.0, 1.0


@pytest.fixture
def env() -> Environment:
    return Environment()


@pytest.fixture(params=[*CHANNELS, "serial-3", "fair-3"])
def make(request: pytest.FixtureRequest, env: Environment) -> Callable[[], Channel]:
    discipline, _, carriers = request.param.partition("-")
    return lambda: CHANNELS[discipline](env, carriers=int(carriers or 1))


@pytest.fixture
def channel(make: Callable[[], Channel]) -> Channel:
    return make()


@pytest.mark.parametrize("name", CHANNELS)
def test_a_discipline_names_its_channel(name: str) -> None:
    discipline = registry.load("disciplines", name)()
    assert isinstance(discipline, Discipline)
    assert isinstance(discipline.make_channel(Environment()), Channel)


# What every channel does with a message that is alone on it.


def test_alone_a_message_takes_its_airtime_whatever_part_of_the_channel_it_can_use(
    env: Environment, channel: Channel
) -> None:
    flow = put(channel, 4.0, share=0.25, weight=7.0)
    at(env, 1.0)
    assert channel.progress(flow) == Progress(share_sent=0.25, spent_s=0.25)
    env.run()
    assert (flow.arrived_s, channel.progress(flow)) == (4.0, Progress(share_sent=ALL, spent_s=1.0))


def test_a_message_is_received_a_delay_after_its_last_bit_was_sent(env: Environment, channel: Channel) -> None:
    channel.delay_s = 1.5
    flow = put(channel, 4.0)
    at(env, 4.5)
    assert not channel.holds(flow)
    assert list(channel.flows) == []
    assert channel.progress(flow).share_sent == ALL
    env.run()
    assert flow.arrived_s == 5.5


def test_who_was_sent_on_another_channel_before_waits_for_the_end_of_a_pause_like_anybody(
    env: Environment, make: Callable[[], Channel]
) -> None:
    another, channel = make(), make()
    flow = put(another, 1.0)
    env.run()
    channel.pause()
    flow.arrived_s = math.nan
    flow.offer(3.0, env.now)
    channel.start(flow)
    at(env, 3.0)
    assert channel.progress(flow) == Progress(NOTHING, 0.0)
    channel.adjust(flow, 2.0, 1.0)
    at(env, 4.0)
    channel.resume()
    env.run()
    assert flow.arrived_s == 6.0


def test_what_is_on_the_way_does_not_delay_what_comes_after_it(env: Environment, channel: Channel) -> None:
    channel.delay_s = 10.0
    flows, order = [], []
    for number in range(4):
        at(env, 4.5 * number)
        flows.append(put(channel, 4.0))
        flows[-1].also = lambda number=number: order.append(number)
    env.run()
    assert [flow.arrived_s for flow in flows] == [14.0, 18.5, 23.0, 27.5]
    assert order == [0, 1, 2, 3]


def test_what_is_stopped_on_the_way_does_not_take_others_with_it(env: Environment, channel: Channel) -> None:
    channel.delay_s = 10.0
    flows = []
    for number in range(3):
        at(env, 4.5 * number)
        flows.append(put(channel, 4.0))
    at(env, 13.5)
    channel.stop(flows[0])
    at(env, 20.0)
    channel.stop(flows[2])
    env.run()
    assert [flow.arrived_s for flow in flows] == pytest.approx([math.nan, 18.5, math.nan], nan_ok=True)


@pytest.mark.parametrize("airtime_s", [0.0, 2.0])
def test_a_message_never_arrives_within_the_call_that_starts_it(
    env: Environment, channel: Channel, airtime_s: float
) -> None:
    flow = put(channel, airtime_s)
    assert channel.holds(flow) or airtime_s == 0
    assert math.isnan(flow.arrived_s)
    env.run()
    assert flow.arrived_s == airtime_s


def test_what_is_stopped_keeps_what_was_sent_and_never_arrives(env: Environment, channel: Channel) -> None:
    flow = put(channel, 4.0)
    at(env, 1.0)
    channel.stop(flow)
    env.run()
    assert math.isnan(flow.arrived_s)
    assert not channel.holds(flow)
    assert channel.progress(flow) == Progress(share_sent=0.25, spent_s=1.0)


def test_what_is_stopped_after_its_last_bit_never_arrives(env: Environment, channel: Channel) -> None:
    channel.delay_s = 1.0
    flow = put(channel, 4.0)
    at(env, 4.5)
    channel.stop(flow)
    env.run()
    assert math.isnan(flow.arrived_s)
    assert channel.progress(flow) == Progress(share_sent=ALL, spent_s=4.0)


def test_what_was_stopped_may_be_started_again_where_it_was(env: Environment, channel: Channel) -> None:
    flow = put(channel, 4.0)
    at(env, 1.0)
    channel.stop(flow)
    at(env, 10.0)
    channel.start(flow)
    at(env, 11.0)
    assert channel.progress(flow) == Progress(share_sent=0.5, spent_s=2.0)
    env.run()
    assert flow.arrived_s == 13.0


def test_another_rate_counts_for_what_is_left(env: Environment, channel: Channel) -> None:
    # Half of it in 4 s; the other half takes 12 s at a third of the rate, of which 3 s are a quarter of that half.
    flow = put(channel, 8.0)
    at(env, 4.0)
    channel.adjust(flow, 12.0, 0.5)
    at(env, 7.0)
    assert channel.progress(flow) == Progress(share_sent=0.5 + 0.25 * 0.5, spent_s=4.0 + 3.0 * 0.5)
    env.run()
    assert flow.arrived_s == 16.0
    assert channel.progress(flow) == Progress(share_sent=ALL, spent_s=4.0 + 12.0 * 0.5)


def test_the_same_rate_again_changes_nothing(env: Environment, channel: Channel) -> None:
    flow = put(channel, 8.0)
    for second in range(1, 8):
        at(env, float(second))
        channel.adjust(flow, 8.0 - second, 1.0)
    env.run()
    assert flow.arrived_s == 8.0


def test_a_pause_delays_by_its_length(env: Environment, channel: Channel) -> None:
    flow = put(channel, 4.0)
    at(env, 1.0)
    channel.pause()
    at(env, 50.0)
    assert channel.progress(flow) == Progress(share_sent=0.25, spent_s=1.0)
    assert list(channel.flows) == [flow]
    channel.resume()
    at(env, 51.0)
    assert channel.progress(flow).share_sent == 0.5
    env.run()
    assert flow.arrived_s == 53.0


def test_what_is_sent_already_arrives_during_a_pause(env: Environment, channel: Channel) -> None:
    channel.delay_s = 2.0
    flow = put(channel, 4.0)
    at(env, 5.0)
    channel.pause()
    env.run()
    assert flow.arrived_s == 6.0


@pytest.mark.parametrize("airtime_s", [0.0, 2.0])
def test_what_is_started_during_a_pause_waits_for_its_end(env: Environment, channel: Channel, airtime_s: float) -> None:
    channel.pause()
    flow = put(channel, airtime_s)
    at(env, 10.0)
    assert channel.holds(flow)
    assert channel.progress(flow) == Progress(share_sent=NOTHING, spent_s=0.0)
    assert flow.begun_s is None
    channel.resume()
    env.run()
    assert (flow.begun_s, flow.arrived_s) == (10.0, 10.0 + airtime_s)


def test_another_rate_in_a_pause_counts_from_its_end(env: Environment, channel: Channel) -> None:
    flow = put(channel, 8.0)
    at(env, 4.0)
    channel.pause()
    channel.adjust(flow, 1.0, 1.0)
    at(env, 10.0)
    assert channel.progress(flow).share_sent == 0.5
    channel.resume()
    env.run()
    assert flow.arrived_s == 11.0


def test_what_is_stopped_in_a_pause_never_arrives(env: Environment, channel: Channel) -> None:
    first, second = put(channel, 4.0), put(channel, 4.0)
    channel.pause()
    at(env, 10.0)
    channel.stop(first)
    channel.resume()
    env.run()
    assert math.isnan(first.arrived_s)
    assert second.arrived_s == 14.0


def test_nothing_is_planned_for_who_stays_behind_in_a_pause(env: Environment, channel: Channel) -> None:
    first, second = put(channel, 4.0), put(channel, 4.0)
    at(env, 1.0)
    channel.pause()
    channel.stop(first)
    env.run()
    assert env.now < math.inf
    assert math.isnan(second.arrived_s)


def test_a_short_pause_ends_once(env: Environment, channel: Channel) -> None:
    flow = put(channel, 4.0)
    at(env, 1.0)
    for _ in range(3):
        channel.pause()
        channel.resume()
    env.run()
    assert flow.arrived_s == 4.0


def test_nothing_counts_as_sent_of_a_message_without_airtime_before_it_arrives(
    env: Environment, channel: Channel
) -> None:
    channel.pause()
    flow = put(channel, 0.0)
    at(env, 1.0)
    assert channel.progress(flow).share_sent == NOTHING
    channel.stop(flow)
    assert channel.progress(flow).share_sent == NOTHING
    again = put(channel, 0.0)
    channel.resume()
    env.run()
    assert channel.progress(again).share_sent == ALL


def test_flows_are_in_the_order_in_which_they_were_started(env: Environment, channel: Channel) -> None:
    flows = [put(channel, airtime_s) for airtime_s in (4.0, 8.0, 2.0, 8.0)]
    assert list(channel.flows) == flows
    channel.stop(flows[1])
    assert list(channel.flows) == [flows[0], flows[2], flows[3]]


def test_who_arrives_may_start_the_next_at_once(env: Environment, channel: Channel) -> None:
    flow, later = put(channel, 4.0), []
    flow.also = lambda: later.append(put(channel, 2.0))
    env.run()
    assert [flow.arrived_s, later[0].arrived_s] == [4.0, 6.0]


@pytest.mark.parametrize("delay_s", [0.0, 1.5])
def test_who_arrives_may_stop_those_who_would_arrive_with_him(
    env: Environment, channel: Channel, delay_s: float
) -> None:
    channel.delay_s = delay_s
    first, second, third = put(channel, 4.0), put(channel, 4.0), put(channel, 4.0)
    first.also = lambda: channel.stop(second)
    env.run()
    assert math.isnan(second.arrived_s)
    assert first.arrived_s <= third.arrived_s <= 12.0 + delay_s


@pytest.mark.parametrize("start_s", [0.0, 1e8])
@pytest.mark.parametrize("carriers", [1, 3])
@pytest.mark.parametrize("discipline", CHANNELS)
def test_looking_at_progress_changes_nothing(discipline: str, carriers: int, start_s: float) -> None:
    def arrivals(*, look: bool) -> list[float]:
        env = Environment(start_s)
        watched = CHANNELS[discipline](env, carriers=carriers)
        flows: list[Note] = []
        for step in range(60):
            at(env, start_s + step / 7)
            if step < 30:
                flows.append(put(watched, 1 / (step + 1), share=1 / (1 + step % 3)))
            if look:
                seen = [watched.progress(flow) for flow in flows]
                assert seen == [watched.progress(flow) for flow in flows]
        env.run()
        return [flow.arrived_s for flow in flows]

    assert arrivals(look=True) == arrivals(look=False)


# First come, first served; and everybody at once.

times = st.integers(0, 20)
offers = st.lists(st.tuples(times, times), max_size=12).map(sorted)


def arrivals_s(channel: Channel, offered: list[tuple[float, float]]) -> list[float]:
    """When each message arrives; *offered* are times and airtimes, in the order of the times."""
    flows = []
    for at_s, airtime_s in offered:
        at(channel.env, at_s)
        flows.append(put(channel, airtime_s))
    channel.env.run()
    return [flow.arrived_s for flow in flows]


@given(offers)
def test_serial_sends_in_the_order_of_arrival_without_gaps(offered: list[tuple[int, int]]) -> None:
    expected, free_s = [], 0
    for at_s, airtime_s in offered:
        free_s = max(at_s, free_s) + airtime_s
        expected.append(free_s)
    assert arrivals_s(SerialChannel(Environment()), offered) == expected


@given(offers)
def test_dedicated_sends_each_at_once(offered: list[tuple[int, int]]) -> None:
    expected = [at_s + airtime_s for at_s, airtime_s in offered]
    assert arrivals_s(DedicatedChannel(Environment()), offered) == expected


def test_serial_keeps_the_order_of_messages_offered_in_one_instant(env: Environment) -> None:
    channel, order = SerialChannel(env), []
    flows = [put(channel, airtime_s) for airtime_s in (3.0, 1.0, 0.0, 2.0)]
    for number, flow in enumerate(flows):
        flow.also = lambda number=number: order.append(number)
    env.run()
    assert [flow.arrived_s for flow in flows] == [3, 4, 4, 6]
    assert order == [0, 1, 2, 3]


def test_waiting_and_progress_can_be_read_at_any_time(env: Environment) -> None:
    channel = SerialChannel(env)
    first, second = put(channel, 4.0), put(channel, 2.0)
    at(env, 1.0)
    assert (channel.progress(first).share_sent, channel.progress(second).share_sent) == (0.25, 0.0)
    at(env, 5.0)
    assert (channel.progress(first).share_sent, channel.progress(second).share_sent) == (1.0, 0.5)
    env.run()
    assert (first.begun_s, second.begun_s) == (0.0, 4.0)
    assert channel.progress(second) == Progress(share_sent=1.0, spent_s=2.0)


@pytest.fixture
def three(env: Environment) -> tuple[SerialChannel, list[Note]]:
    channel = SerialChannel(env)
    return channel, [put(channel, 4.0), put(channel, 2.0), put(channel, 1.0)]


Three = tuple[SerialChannel, list[Note]]


def test_stopping_in_the_queue_moves_up_those_behind(env: Environment, three: Three) -> None:
    channel, (first, second, third) = three
    at(env, 3.0)
    channel.stop(second)
    env.run()
    assert (first.arrived_s, third.arrived_s) == (4.0, 5.0)
    assert math.isnan(second.arrived_s)
    assert channel.progress(second) == Progress(share_sent=NOTHING, spent_s=0.0)


def test_stopping_what_is_being_sent_frees_the_channel_at_once(env: Environment, three: Three) -> None:
    channel, (first, second, third) = three
    at(env, 3.0)
    channel.stop(first)
    env.run()
    assert (first.share_sent, second.begun_s) == (0.75, 3.0)
    assert (second.arrived_s, third.arrived_s) == (5.0, 6.0)


def test_stopping_in_the_instant_of_its_end_frees_the_channel_once(env: Environment, three: Three) -> None:
    channel, (first, second, third) = three
    at(env, 4.0)  # and nothing of that instant has happened yet
    channel.stop(first)
    env.run()
    assert math.isnan(first.arrived_s)
    assert (second.arrived_s, third.arrived_s) == (6.0, 7.0)


def test_a_serial_channel_is_free_after_everything_was_stopped(env: Environment, three: Three) -> None:
    channel, flows = three
    at(env, 1.0)
    for flow in flows:
        channel.stop(flow)
    late = put(channel, 1.0)
    env.run()
    assert (late.begun_s, late.arrived_s) == (1.0, 2.0)
    assert all(math.isnan(flow.arrived_s) for flow in flows)


def test_a_serial_queue_keeps_its_order_over_a_pause(env: Environment, three: Three) -> None:
    channel, (first, second, third) = three
    at(env, 5.0)  # the first has been sent, and half of the second
    channel.pause()
    at(env, 9.0)
    fourth = put(channel, 1.0)
    channel.resume()
    env.run()
    assert [flow.arrived_s for flow in (first, second, third, fourth)] == [4.0, 10.0, 11.0, 12.0]


def test_another_rate_in_the_queue_keeps_its_place(env: Environment, three: Three) -> None:
    channel, (first, second, third) = three
    at(env, 1.0)
    channel.adjust(second, 20.0, 1.0)
    channel.adjust(first, 6.0, 1.0)
    env.run()
    assert [flow.arrived_s for flow in (first, second, third)] == [7.0, 27.0, 28.0]
    assert (second.begun_s, third.begun_s) == (7.0, 27.0)


def test_stopping_a_dedicated_message_disturbs_nobody(env: Environment) -> None:
    channel = DedicatedChannel(env)
    first, second = put(channel, 4.0), put(channel, 2.0)
    at(env, 1.0)
    channel.stop(first)
    env.run()
    assert channel.progress(first).share_sent == 0.25
    assert second.arrived_s == 2.0


def test_the_roundings_of_many_messages_in_a_queue_do_not_add_up() -> None:
    start_s = 1e8
    need_s = 1.0 + 0.45 * math.ulp(start_s)
    env = Environment(start_s)
    channel = SerialChannel(env)
    flows = [put(channel, need_s) for _ in range(4_000)]
    env.run()
    for place, flow in enumerate(flows, start=1):
        assert abs(Fraction(flow.arrived_s) - Fraction(start_s) - place * Fraction(need_s)) <= 4 * math.ulp(start_s)
