"""Hundreds of different shares and weights on one fair channel: what each gets, and what that costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from flows import Note, at, put
from simpy import Environment

from fedsim.network.disciplines.fair import FairChannel

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Offers:
    """Messages, in the order of their arrival."""

    start_s: Floats
    need_s: Floats
    share: Floats
    weight: Floats

    @classmethod
    def drawn(cls, number: int, *, shares: int, gap_s: float, widest: float, weights: tuple[float, ...]) -> Offers:
        """Of so many shares; some come and go with their message, where there are as many."""
        rng = np.random.default_rng(5)
        return cls(
            np.cumsum(rng.exponential(gap_s, number)),
            rng.exponential(1.0, number),
            rng.permutation(np.resize(widest * rng.uniform(0.05, 1.0, shares), number)),
            rng.choice(weights, number),
        )


def parts_of(share: Floats, weight: Floats, carriers: int) -> Floats:
    """By water-filling: in the order of the brims, who can use no more than his part has that, the others share."""
    parts, order = np.empty(len(share)), np.argsort(share / weight, kind="stable")
    left, weights = float(carriers), np.cumsum(weight[order[::-1]])[::-1]
    for place, (one, sharing) in enumerate(zip(order.tolist(), weights.tolist(), strict=True)):
        if share[one] * sharing > weight[one] * left:
            open_to_all = order[place:]
            parts[open_to_all] = weight[open_to_all] * left / sharing
            break
        parts[one] = share[one]
        left -= share[one]
    return parts


def re_shared(offers: Offers, carriers: int) -> tuple[Floats, int]:
    """When each has been sent, touching all of them at every event; and how many were there at most."""
    left_s, sent_s, now_s = offers.need_s.copy(), np.full(len(offers.need_s), math.nan), 0.0
    here, come, most = np.array([], dtype=int), 0, 0
    while come < len(left_s) or len(here):
        speed = parts_of(offers.share[here], offers.weight[here], carriers) / offers.share[here]
        ends_s = left_s[here] / speed
        next_s = offers.start_s[come] - now_s if come < len(left_s) else math.inf
        step_s = min(next_s, ends_s.min(initial=math.inf))
        now_s += step_s
        left_s[here] -= speed * step_s
        if step_s == next_s:
            here, come = np.append(here, come), come + 1
            most = max(most, len(here))
        else:
            through = int(np.argmin(ends_s))
            sent_s[here[through]] = now_s
            here = np.delete(here, through)
    return sent_s, most


def arrivals_s(offers: Offers, carriers: int) -> tuple[list[Note], int]:
    """The messages that a fair channel has carried; and the events it took."""
    env, events, flows = Environment(), 0, []
    channel = FairChannel(env, carriers=carriers)
    for start_s, need_s, share, weight in zip(
        *(column.tolist() for column in (offers.start_s, offers.need_s, offers.share, offers.weight)), strict=True
    ):
        while env.peek() < start_s:
            env.step()
            events += 1
        at(env, start_s)
        flows.append(put(channel, need_s, share=share, weight=weight))
    while env.peek() < math.inf:
        env.step()
        events += 1
    return flows, events


@pytest.mark.parametrize(
    ("shares", "carriers", "widest", "weights"),
    [
        pytest.param(600, 1, 0.02, (1.0,), id="narrow"),
        pytest.param(600, 1, 0.02, (1.0, 2.0, 0.5), id="of_three_weights"),
        pytest.param(600, 7, 1.0, (0.1, 1.0, 100.0), id="wide_on_several_carriers"),
        pytest.param(5, 1, 0.02, (1.0, 2.0), id="crowds_of_a_few_kinds"),
    ],
)
def test_hundreds_of_shares_are_shared_as_one_would_plainly(
    shares: int, carriers: int, widest: float, weights: tuple[float, ...]
) -> None:
    offers = Offers.drawn(600, shares=shares, gap_s=widest / carriers / 4, widest=widest, weights=weights)
    expected_s, most = re_shared(offers, carriers)
    assert most > 200
    flows, events = arrivals_s(offers, carriers)
    assert np.abs(np.array([flow.arrived_s for flow in flows]) - expected_s).max() <= 1e-9 + 1e-12 * expected_s.max()
    assert events <= 2 * 2 * len(flows)
    assert [flow.spent_s for flow in flows] == pytest.approx((offers.need_s * offers.share).tolist(), rel=1e-12)


@pytest.mark.parametrize("share", [pytest.param(1.0, id="open"), pytest.param(1e-3, id="full")])
def test_kinds_of_which_each_newcomer_is_sent_first_are_shared_as_one_would_plainly(share: float) -> None:
    rng = np.random.default_rng(7)
    for number in range(40, 80):  # whenever entries that are void are thrown away
        needs_s = np.concatenate([rng.uniform(3.0, 9.0, 20), np.linspace(2.9, 1.0, number)])
        weights = np.concatenate([np.resize(np.linspace(1.0, 3.0, 10), 20), np.resize([1.0, 2.0], number)])
        offers = Offers(np.zeros(len(needs_s)), needs_s, np.full(len(needs_s), share), weights)
        flows, _ = arrivals_s(offers, 1)
        assert [flow.arrived_s for flow in flows] == pytest.approx(re_shared(offers, 1)[0].tolist(), rel=1e-12)


def test_a_light_one_that_was_long_alone_leaves_the_heavy_one_its_exact_part() -> None:
    # A light one makes the virtual clock large: 1e18 for each second. The heavy one needs 1e-18 of it for a second.
    env = Environment()
    channel = FairChannel(env)
    light, other = put(channel, 2e6, weight=1e-18), put(channel, 2e6, weight=2e-18)
    at(env, 1e6)
    heavy = put(channel, 1.0, weight=1e18)
    env.run()
    assert heavy.arrived_s == 1e6 + 1.0
    assert (other.arrived_s, light.arrived_s) == pytest.approx((3e6 + 1.0, 4e6 + 1.0), rel=1e-15)


def test_shares_of_which_none_comes_twice_are_forgotten() -> None:
    env = Environment()
    channel = FairChannel(env)
    steady = [put(channel, 1e6), put(channel, 1e6, share=1e-4)]  # one on each side, and next on it
    first = put(channel, 1e12, share=0.99)
    for number in range(2_000):
        channel.stop(first)
        first = put(channel, 1e12, share=0.9 * (number + 1) / 2_000)
        at(env, float(number))
    assert list(channel.flows) == [*steady, first]
    crowd = channel._sharing
    held = [len(getattr(crowd, name)) for name in ("_classes", "_order", "_by_time", "_by_reading")]
    assert held[:2] == [3, 3] and max(held) <= 2 * 3 + 32 + 1


def test_who_shares_alone_again_after_others_shares_as_ever() -> None:
    # The crowd of many kinds is given up when the channel is empty, and results are those of a new channel.
    def ends_s(channel: FairChannel) -> list[float]:
        needs_s = np.random.default_rng(6).exponential(1.0, 200).tolist()
        flows = [put(channel, need_s, share=0.3, weight=0.7) for need_s in needs_s]
        channel.env.run()
        return [flow.arrived_s for flow in flows]

    used = FairChannel(Environment())
    for share in (0.9, 0.8, 0.7):
        put(used, 1.0, share=share)
    used.env.run()
    new = FairChannel(Environment(used.env.now))
    assert ends_s(used) == ends_s(new)
