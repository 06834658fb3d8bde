"""Fair sharing: who gets what, and what it costs. That it is exact, whatever happens, is in `test_exact_channels`."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flows import Note, at, put
from hypothesis import given
from hypothesis import strategies as st
from scripts import LATE_S, WEIGHTS
from simpy import Environment

from fedsim.network.disciplines.channel import Progress
from fedsim.network.disciplines.fair import Fair, FairChannel
from fedsim.network.disciplines.serial import SerialChannel


@pytest.fixture
def env() -> Environment:
    return Environment()


@pytest.fixture
def channel(env: Environment) -> FairChannel:
    return FairChannel(env)


def arrivals_s(flows: list[Note]) -> list[float]:
    return [flow.arrived_s for flow in flows]


def test_two_have_half_of_the_channel_each(env: Environment, channel: FairChannel) -> None:
    #            0       1           5     6
    # first      alone   half        gone           1 + 4/2 = 3 s of work
    # second             half        alone  gone    4/2 + 1 = 3 s of work
    first = put(channel, 3.0)
    at(env, 1.0)
    second = put(channel, 3.0)
    at(env, 3.0)
    assert channel.progress(first) == Progress(share_sent=2 / 3, spent_s=2.0)
    assert channel.progress(second) == Progress(share_sent=1 / 3, spent_s=1.0)
    env.run()
    assert arrivals_s([first, second]) == [5.0, 6.0]


def test_a_heavier_one_has_more_in_proportion(env: Environment, channel: FairChannel) -> None:
    light, heavy = put(channel, 2.0, weight=0.5), put(channel, 6.0, weight=1.5)
    at(env, 4.0)
    assert (channel.progress(light).spent_s, channel.progress(heavy).spent_s) == (1.0, 3.0)
    env.run()
    assert arrivals_s([light, heavy]) == [8.0, 8.0]


def test_what_one_cannot_use_is_left_to_the_others(env: Environment, channel: FairChannel) -> None:
    # The first can use a quarter only, which is its full rate; the other two have three eighths each.
    narrow, *wide = put(channel, 8.0, share=0.25), put(channel, 3.0), put(channel, 3.0)
    env.run()
    assert arrivals_s([narrow, *wide]) == [8.0, 8.0, 8.0]
    assert [flow.spent_s for flow in (narrow, *wide)] == [2.0, 3.0, 3.0]


def test_a_crowd_of_narrow_ones_leaves_nobody_his_full_rate(env: Environment, channel: FairChannel) -> None:
    # Each wants a quarter; three are at their full rate, and eight at half of it.
    flows = [put(channel, 4.0, share=0.25) for _ in range(3)]
    at(env, 2.0)
    assert [channel.progress(flow).share_sent for flow in flows] == [0.5] * 3
    for flow in flows:
        channel.stop(flow)
    crowd = [put(channel, 4.0, share=0.25) for _ in range(8)]
    env.run()
    assert arrivals_s(crowd) == [10.0] * 8
    assert [flow.spent_s for flow in crowd] == [1.0] * 8


def test_equal_ones_that_start_together_leave_together_in_the_order_of_their_arrival(env: Environment) -> None:
    channel, order = FairChannel(env), []
    flows = [put(channel, 0.1) for _ in range(1_000)]
    for number, flow in enumerate(flows):
        flow.also = lambda number=number: order.append(number)
    events = 0
    while env.peek() < math.inf:
        env.step()
        events += 1
    assert order == list(range(1_000))
    assert set(arrivals_s(flows)) == {flows[0].arrived_s}
    assert flows[0].arrived_s == pytest.approx(100.0, rel=1e-12)
    assert events <= 2


@given(st.lists(st.tuples(st.floats(0.0, 3.0), st.floats(1e-3, 3.0), st.sampled_from(WEIGHTS)), max_size=30))
def test_the_channel_is_busy_exactly_as_long_as_a_serial_one(offers: list[tuple[float, float, float]]) -> None:
    # Work conservation: nobody's airtime depends on who else is there, so the work that is left does not either.
    def left_s(kind: type[FairChannel] | type[SerialChannel]) -> list[float]:
        env = Environment()
        channel, flows, left = kind(env), [], []
        for gap_s, need_s, weight in offers:
            at(env, env.now + gap_s)
            left.append(sum(need - channel.progress(flow).spent_s for flow, need in flows))
            flows.append((put(channel, need_s, weight=weight), need_s))
        env.run()
        return [*left, env.now]

    assert left_s(FairChannel) == pytest.approx(left_s(SerialChannel), rel=1e-9, abs=1e-9)


def test_each_share_and_weight_may_be_another(env: Environment, channel: FairChannel) -> None:
    # Fifty classes, of weights 1 to 50, which are 1,275 together; then the lightest is alone, at its full rate.
    flows = [put(channel, weight, share=1 - weight / 1_000, weight=weight) for weight in map(float, range(1, 51))]
    at(env, 100.0)
    spent_s = [channel.progress(flow).spent_s for flow in flows]
    assert spent_s == pytest.approx([100 * weight / 1_275 for weight in range(1, 51)], rel=1e-12)
    for flow in flows[1:]:
        channel.stop(flow)
    env.run()
    assert flows[0].arrived_s == pytest.approx(100 + 1 - 100 / 1_275 / 0.999, rel=1e-12)


def test_ten_thousand_new_rates_are_forgotten_again(env: Environment, channel: FairChannel) -> None:
    # Void entries must neither delay anybody nor pile up: every second the first one starts again from the beginning.
    first, other = put(channel, 1e9), put(channel, 10_000.0)
    for second in range(10_000):
        at(env, float(second))
        channel.adjust(first, 1e9, 1.0 - 0.5 * (second % 2))
    channel.stop(first)
    env.run()
    assert other.arrived_s == pytest.approx(9_999.0 + (10_000.0 - 9_999.0 / 2), rel=1e-12)


@pytest.mark.parametrize("start_s", [0.0, 8_000.0, LATE_S])
def test_ten_thousand_in_one_cell_end_with_one_event_for_each(start_s: float) -> None:
    # All at once: the k-th shortest of n leaves when k have had its work, and n - k more as much as the k-th had. With
    # an absolute tolerance, the one that is due may stay for ever once the clock is large.
    rng = np.random.default_rng(1)
    needs_s = rng.exponential(1.0, 10_000)
    env = Environment(start_s)
    channel = FairChannel(env)
    flows = [put(channel, need_s) for need_s in needs_s.tolist()]
    events = 0
    while env.peek() < math.inf:
        env.step()
        events += 1
        assert events <= 10_100  # some have been first for a moment, and had an alarm
    in_order = np.sort(needs_s)
    expected_s = np.cumsum(np.diff(in_order, prepend=0.0) * np.arange(10_000, 0, -1))[np.argsort(np.argsort(needs_s))]
    took_s = np.array(arrivals_s(flows)) - start_s
    assert np.abs(took_s - expected_s).max() <= 1e-9 + 1e-12 * env.now


@pytest.mark.parametrize("start_s", [0.0, LATE_S])
def test_ten_thousand_that_come_and_go_take_at_most_two_events_each(start_s: float) -> None:
    # At nine tenths of the capacity, of three kinds; the exact twin is for short scripts, this is for long ones.
    rng = np.random.default_rng(2)
    env, events, flows = Environment(start_s), 0, []
    channel = FairChannel(env)
    for gap_s, need_s, kind in zip(
        rng.exponential(1 / 0.9, 10_000), rng.exponential(1.0, 10_000), rng.integers(3, size=10_000), strict=True
    ):
        at_s = env.now + gap_s
        while env.peek() < at_s:
            env.step()
            events += 1
        at(env, at_s)
        flows.append(put(channel, float(need_s), weight=(1.0, 2.0, 0.5)[kind]))
    while env.peek() < math.inf:
        env.step()
        events += 1
    assert events <= 2 * 2 * 10_000
    assert not np.isnan(arrivals_s(flows)).any()


def test_weights_are_by_device_class() -> None:
    discipline = Fair(weights={"robot": 3.0})
    assert [discipline.weight(name) for name in ("robot", "sensor", None)] == [3.0, 1.0, 1.0]


def test_who_was_stopped_does_not_leave_with_the_equal_ones(env: Environment, channel: FairChannel) -> None:
    flows = [put(channel, 2.0) for _ in range(3)]
    at(env, 3.0)
    channel.stop(flows[1])
    env.run()
    assert arrivals_s(flows) == pytest.approx([5.0, math.nan, 5.0], nan_ok=True)
    assert flows[1].share_sent == 0.5


@pytest.mark.parametrize("need_s", [1.0, 2.0])
def test_who_was_taken_off_one_channel_may_be_on_another(env: Environment, need_s: float) -> None:
    # Each channel numbers its messages by itself; what is left of the second one here must not be taken for it there.
    here, there = FairChannel(env), FairChannel(env)
    first, second, third = put(here, 1.0), put(here, need_s), put(here, 4.0)
    here.stop(second)
    other = put(there, 20.0)
    at(env, 0.5)
    there.start(second)
    at(env, 1.5)
    assert (list(here.flows), list(there.flows)) == ([first, third], [other, second])
    env.run()
    assert arrivals_s([first, second, third, other]) == [2.0, 0.5 + 2 * need_s, 5.0, 20.0 + need_s]


def test_many_who_stop_leave_the_others_in_order(env: Environment, channel: FairChannel) -> None:
    # Three quarters of them stop, which is when the queue is cleared of void entries; the k-th shortest of the n others
    # leaves when k have had its work, and n - k more as much as the k-th had.
    needs_s = np.random.default_rng(3).permutation(np.arange(1.0, 401.0)).tolist()
    flows = [put(channel, need_s) for need_s in needs_s]
    stay = np.random.default_rng(4).permutation(400)[:100].tolist()
    for number, flow in enumerate(flows):
        if number not in stay:
            channel.stop(flow)
    env.run()
    in_order_s = np.sort([needs_s[number] for number in stay])
    expected_s = np.cumsum(np.diff(in_order_s, prepend=0.0) * np.arange(100, 0, -1))
    found_s = [flows[number].arrived_s for number in sorted(stay, key=lambda number: needs_s[number])]
    assert found_s == pytest.approx(expected_s.tolist(), rel=1e-12)


@pytest.mark.parametrize("start_s", [8_000.0, 1e8])
def test_the_roundings_of_many_departures_do_not_add_up(start_s: float) -> None:
    # Gaps of a little less than half a unit in the last place of the clock, all rounded alike.
    gap_s = 1.0 + 0.45 * math.ulp(start_s)
    needs_s = np.cumsum([gap_s / sharing for sharing in range(4_000, 0, -1)]).tolist()
    env = Environment(start_s)
    channel = FairChannel(env)
    flows = [put(channel, need_s) for need_s in needs_s]
    env.run()
    exact_s, sent_s = Fraction(start_s), Fraction(0)
    for place, (flow, need_s) in enumerate(zip(flows, needs_s, strict=True)):
        exact_s += (Fraction(need_s) - sent_s) * (len(flows) - place)
        sent_s = Fraction(need_s)
        assert abs(Fraction(flow.arrived_s) - exact_s) <= 20 * math.ulp(start_s)


def test_a_message_of_no_length_does_not_wait_whatever_the_weights(env: Environment, channel: FairChannel) -> None:
    long = put(channel, 1e6, weight=1e18)
    empty = put(channel, 0.0, weight=1.0)
    env.run()
    assert (empty.arrived_s, long.arrived_s) == (0.0, 1e6)
