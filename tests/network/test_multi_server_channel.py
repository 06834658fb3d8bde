"""A queue before several carriers. That it is exact, whatever happens, is in `test_exact_channels`."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flows import Note, at, put
from hypothesis import given
from hypothesis import strategies as st
from simpy import Environment

from fedsim.network.disciplines.channel import Progress
from fedsim.network.disciplines.multi_server import MultiServerChannel
from fedsim.network.disciplines.serial import Serial, SerialChannel


@pytest.fixture
def env() -> Environment:
    return Environment()


@pytest.fixture
def channel(env: Environment) -> MultiServerChannel:
    return MultiServerChannel(env, carriers=2)


@pytest.fixture
def four(channel: MultiServerChannel) -> list[Note]:
    #             0      2      4    5      8
    # one carrier   first    third          gone
    # the other        second  fourth gone          (fourth: from 4 to 5; third: from 2 to 8)
    return [put(channel, need_s) for need_s in (2.0, 4.0, 6.0, 1.0)]


def arrivals_s(flows: list[Note]) -> list[float]:
    return [flow.arrived_s for flow in flows]


def test_one_carrier_is_a_channel_that_plans_ahead_and_several_are_not(env: Environment) -> None:
    kinds = [type(Serial().make_channel(env, carriers=carriers)) for carriers in (1, 2, 3)]
    assert kinds == [SerialChannel, MultiServerChannel, MultiServerChannel]


def test_the_first_that_waits_has_the_next_carrier_that_is_free(env: Environment, four: list[Note]) -> None:
    env.run()
    assert [flow.begun_s for flow in four] == [0.0, 0.0, 2.0, 4.0]
    assert arrivals_s(four) == [2.0, 4.0, 8.0, 5.0]


def test_each_has_a_carrier_of_its_own(env: Environment, channel: MultiServerChannel, four: list[Note]) -> None:
    at(env, 1.0)
    assert [channel.progress(flow) for flow in four] == [
        Progress(0.5, 1.0),
        Progress(0.25, 1.0),
        Progress(0.0, 0.0),
        Progress(0.0, 0.0),
    ]
    assert list(channel.flows) == four


def test_who_stops_leaves_the_carrier_to_the_first_that_waits(
    env: Environment, channel: MultiServerChannel, four: list[Note]
) -> None:
    at(env, 1.0)
    channel.stop(four[1])
    assert list(channel.flows) == [four[0], *four[2:]]
    env.run()
    assert [flow.begun_s for flow in four] == [0.0, 0.0, 1.0, 2.0]
    assert arrivals_s(four) == pytest.approx([2.0, math.nan, 7.0, 3.0], nan_ok=True)


def test_who_stops_waiting_lets_those_behind_move_up(
    env: Environment, channel: MultiServerChannel, four: list[Note]
) -> None:
    at(env, 1.0)
    channel.stop(four[2])
    env.run()
    assert four[2].begun_s is None and four[3].begun_s == 2.0
    assert arrivals_s(four) == pytest.approx([2.0, 4.0, math.nan, 3.0], nan_ok=True)


def test_another_rate_keeps_the_carrier_or_the_place(
    env: Environment, channel: MultiServerChannel, four: list[Note]
) -> None:
    at(env, 1.0)
    channel.adjust(four[0], 2.0, 1.0)
    channel.adjust(four[2], 3.0, 1.0)
    env.run()
    assert [flow.begun_s for flow in four] == [0.0, 0.0, 3.0, 4.0]
    assert arrivals_s(four) == [3.0, 4.0, 6.0, 5.0]


def test_nobody_is_given_a_carrier_in_a_pause(env: Environment, channel: MultiServerChannel, four: list[Note]) -> None:
    at(env, 1.0)
    channel.pause()
    at(env, 5.0)
    channel.stop(four[0])
    late = put(channel, 1.0)
    at(env, 11.0)
    assert [channel.progress(flow).share_sent for flow in (*four, late)] == [0.5, 0.25, 0.0, 0.0, 0.0]
    assert list(channel.flows) == [*four[1:], late]
    channel.resume()
    env.run()
    assert [flow.begun_s for flow in (*four, late)] == [0.0, 0.0, 11.0, 14.0, 15.0]
    assert arrivals_s([*four, late]) == pytest.approx([math.nan, 14.0, 17.0, 15.0, 16.0], nan_ok=True)


def test_many_that_have_no_length_arrive_in_order_in_one_instant(env: Environment, channel: MultiServerChannel) -> None:
    order: list[int] = []
    for number in range(6):
        put(channel, 0.0).also = lambda number=number: order.append(number)
    env.run()
    assert (order, env.now) == ([0, 1, 2, 3, 4, 5], 0.0)


times = st.integers(0, 20)


@given(st.lists(st.tuples(times, times), max_size=12).map(sorted))
def test_before_one_carrier_it_is_a_serial_channel(offered: list[tuple[int, int]]) -> None:
    def arrivals(kind: type[SerialChannel] | type[MultiServerChannel]) -> list[tuple[float, float | None, float]]:
        channel, flows = kind(Environment(), 0.5), []
        for at_s, airtime_s in offered:
            at(channel.env, at_s)
            flows.append(put(channel, airtime_s))
        channel.env.run()
        return [(flow.arrived_s, flow.begun_s, flow.spent_s) for flow in flows]

    assert arrivals(MultiServerChannel) == arrivals(SerialChannel)


def test_the_roundings_of_many_messages_do_not_add_up() -> None:
    start_s = 1e8
    need_s = 1.0 + 0.45 * math.ulp(start_s)
    channel = MultiServerChannel(Environment(start_s), carriers=2)
    flows = [put(channel, need_s) for _ in range(8_000)]
    channel.env.run()
    for place, flow in enumerate(flows):
        exact_s = Fraction(start_s) + (place // 2 + 1) * Fraction(need_s)
        assert abs(Fraction(flow.arrived_s) - exact_s) <= 4 * math.ulp(start_s)


def test_who_was_sent_on_another_channel_before_and_waits_now_has_been_given_nothing(
    env: Environment,
) -> None:
    first, second = (MultiServerChannel(env, carriers=2) for _ in range(2))
    flow = put(first, 1.0)
    env.run()
    others = [put(second, 5.0) for _ in range(2)]
    flow.arrived_s = math.nan
    flow.offer(3.0, env.now)
    second.start(flow)
    at(env, 3.0)
    assert [second.served_s(one) for one in (flow, *others)] == [0.0, 2.0, 2.0]
    env.run()
    assert flow.arrived_s == 9.0
