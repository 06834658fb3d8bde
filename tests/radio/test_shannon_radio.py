"""Rates from signal-to-noise ratios: FedGS' formula, coverage and its edge, and how rates follow shadowing."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from radio_sites import BUDGET, GIVEN, shannon, site
from scipy import stats

from fedsim.errors import Misfit
from fedsim.radio.settings import Rates
from fedsim.radio.shannon import Shannon

REDRAWN = {"sigma_db": 6.0, "redraw_every_s": 10.0}


def test_a_rate_is_fedgs_formula() -> None:
    """B log2(1 + SNR) at 10 and 20 dB on 1 MHz: log2 11 and log2 101 megabits."""
    rates = shannon(GIVEN, profile="pure").rates(site(None))
    assert (rates.uplink_bps, rates.downlink_bps) == pytest.approx((1e6 * math.log2(11), 1e6 * math.log2(101)))


def test_given_ratios_are_the_same_for_all_and_for_ever() -> None:
    radio = shannon(GIVEN)
    assert radio.rates(site(1.0)) == radio.rates(site(9e9, index=5)) == radio.rates(site(None))
    assert list(radio.changes(site())) == []


def test_each_direction_has_its_own_bandwidth() -> None:
    radio = shannon(GIVEN, profile="pure", bandwidth_hz=None, uplink_bandwidth_hz=15e3, downlink_bandwidth_hz=180e3)
    rates = radio.rates(site())
    assert (rates.uplink_bps, rates.downlink_bps) == pytest.approx((15e3 * math.log2(11), 180e3 * math.log2(101)))


@given(one_m=st.floats(1, 1e5), other_m=st.floats(1, 1e5))
def test_farther_is_never_faster(one_m: float, other_m: float) -> None:
    nearer_m, farther_m = sorted((one_m, other_m))
    near, far = shannon().rates(site(nearer_m)), shannon().rates(site(farther_m))
    assert near.uplink_bps >= far.uplink_bps
    assert near.downlink_bps >= far.downlink_bps


@given(distance_m=st.floats(1, 1e5), bandwidth_hz=st.floats(1e3, 1e8), factor=st.floats(1.001, 100))
def test_a_wider_band_is_faster_for_all_its_noise(distance_m: float, bandwidth_hz: float, factor: float) -> None:
    narrow, wide = (shannon(profile="pure", bandwidth_hz=hz) for hz in (bandwidth_hz, factor * bandwidth_hz))
    assert wide.rates(site(distance_m)).uplink_bps > narrow.rates(site(distance_m)).uplink_bps


def test_without_end_of_bandwidth_the_rate_has_one() -> None:
    """P / (N0 ln 2), Shannon's limit of B log2(1 + P / (N0 B)); here 10 dB on 1 MHz, moved to a thousand GHz."""
    snr = {**BUDGET, "path_loss": {"name": "log_distance", "exponent": 2.0, "reference_loss_db": 124.0}}
    widest = shannon(snr, profile="pure", bandwidth_hz=1e12).rates(site(1.0))
    power_over_noise_hz = 10 ** ((23 - 124 + 174 - 3) / 10)
    assert widest.uplink_bps == pytest.approx(power_over_noise_hz / math.log(2), rel=1e-4)


def test_one_shadow_is_kept() -> None:
    radio = shannon({**GIVEN, "shadowing": {"sigma_db": 6.0}}, profile="pure")
    assert list(radio.changes(site())) == []
    assert radio.rates(site()) != shannon(GIVEN, profile="pure").rates(site())


def test_a_shadow_lies_on_both_directions_alike() -> None:
    """Reciprocity: in decibels, both ratios are off their medians by the same."""
    radio = shannon({**BUDGET, "shadowing": REDRAWN}, profile="pure")
    median_db = radio.snr.median_db(site(), radio.bandwidths_hz)
    for _, rates in islice(radio.changes(site()), 20):
        off_db = [
            10 * math.log10(2 ** (rate_bps / 1e6) - 1) - snr_db
            for rate_bps, snr_db in zip((rates.uplink_bps, rates.downlink_bps), median_db, strict=True)
        ]
        assert off_db[0] == pytest.approx(off_db[1], abs=1e-6)


def test_changes_tell_the_same_whenever_they_are_asked() -> None:
    radio = shannon({**BUDGET, "shadowing": {**REDRAWN, "correlation_s": 30.0}}, profile="pure")
    once, again = radio.changes(site(1_000.0)), radio.changes(site(1_000.0))
    next(radio.changes(site(1_000.0, index=1)))
    first = [next(once) for _ in range(50)]
    assert [next(again) for _ in range(50)] == first
    assert [time_s for time_s, _ in first] == [10.0 * number for number in range(1, 51)]
    assert len({rates.uplink_bps for _, rates in first}) == 50


TURNS = {"slots": "DDDSU", "special_downlink_symbols": 10}


@pytest.mark.parametrize("profile", ["pure", "lte_36942", "nr_38803"])
@pytest.mark.parametrize("keys", [{}, {"tdd": TURNS, "category": "nr_100mhz_private"}], ids=["all", "in turns, cut"])
def test_one_of_many_has_the_very_rates_that_it_has_alone(profile: str, keys: dict[str, Any]) -> None:
    """At time zero and later; 300 devices, from those that have the most to those without coverage."""
    radio = shannon({**BUDGET, "shadowing": {**REDRAWN, "correlation_s": 30.0}}, profile=profile, **keys)
    sites = [site(20.0 * 1.025**index, index=index, station=index % 3) for index in range(300)]
    assert list(radio.rates_of(sites)) == [radio.rates(one) for one in sites]
    together = [(time_s, list(rates)) for time_s, rates in islice(radio.changes_together(sites), 5)]
    alone = [list(islice(radio.changes(one), 5)) for one in sites]
    assert together == [(row[0][0], [rates for _, rates in row]) for row in zip(*alone, strict=True)]
    downlinks = [rates.downlink_bps for _, row in together for rates in row]
    assert len(set(downlinks)) > 100
    assert (0.0 in downlinks) is (profile != "pure")


def test_coverage_is_as_rare_as_the_normal_law_says() -> None:
    """The median is one sigma above the minimum, so Q(1) = 15.9 % of all draws are without coverage.

    400 draws of 100 devices: standard error 0.18 points; a fault of 5 % of sigma is 1.2 points, more than six of them.
    """
    radio = shannon({**GIVEN, "uplink_db": -4.0, "shadowing": REDRAWN})  # lte_36942: from -10 dB on
    changes = radio.changes_together([site(index=index) for index in range(100)])
    draws = np.concatenate([rates.uplink_bps == 0.0 for _, rates in islice(changes, 400)])
    outage = float(stats.norm.sf(1.0))
    assert draws.mean() == pytest.approx(outage, abs=4 * math.sqrt(outage * (1 - outage) / len(draws)))


@pytest.mark.parametrize(
    ("uplink_db", "downlink_db", "expected"),
    [
        (-10.0, -10.0, None),
        (
            -10.1,
            5.0,
            "sensor 'cam-1' has no coverage in the uplink: its SNR is -10.10 dB, and lte_36942 needs -10 dB; ",
        ),
        (
            5.0,
            -20.0,
            "sensor 'cam-1' has no coverage in the downlink: its SNR is -20.00 dB, and lte_36942 needs -10 dB; ",
        ),
    ],
)
def test_who_is_not_covered_is_told_why(uplink_db: float, downlink_db: float, expected: str | None) -> None:
    radio = shannon({**GIVEN, "uplink_db": uplink_db, "downlink_db": downlink_db})
    why, rates = radio.why_no_coverage(site()), radio.rates(site())
    assert (why is None) == (rates.uplink_bps > 0 and rates.downlink_bps > 0) == (expected is None)
    assert why is None or (why.startswith(str(expected)) and "out_of_coverage: exclude" in why)


def test_the_reason_has_the_numbers_of_the_budget() -> None:
    why = shannon({**BUDGET, "shadowing": {"sigma_db": 1e-6}}).why_no_coverage(site(20_000.0))
    assert why is not None
    assert why.startswith(
        "sensor 'cam-1' has no coverage in the uplink: its SNR is -26.56 dB (path loss 160.6 dB over 20000.0 m) "
        "and -26.56 dB with shadowing, and lte_36942 needs -10 dB; move it, raise the power, or leave "
    )


def test_the_reason_names_what_redraws_give_at_best_and_all_that_is_lost() -> None:
    deep = {**BUDGET, "extra_loss_db": 30.0, "shadowing": {"sigma_db": 1.0, "redraw_every_s": 1.0}}
    why = shannon(deep).why_no_coverage(site(20_000.0))
    assert why is not None
    assert "its SNR is -56.56 dB (path loss 160.6 dB over 20000.0 m, extra loss 30.0 dB) and at best -51.81 dB" in why


def test_the_reason_has_no_distance_where_there_is_none() -> None:
    why = shannon({**BUDGET, "path_loss": {"name": "given", "loss_db": 160.0}}).why_no_coverage(site(None))
    assert why is not None and "its SNR is -26.00 dB (path loss 160.0 dB), and" in why


def test_the_only_draw_decides_on_coverage() -> None:
    deep = shannon({**GIVEN, "uplink_db": -10.0, "shadowing": {"sigma_db": 6.0}})
    sites = [site(index=index) for index in range(40)]
    covered = [deep.why_no_coverage(somewhere) is None for somewhere in sites]
    assert covered == [deep.rates(somewhere).uplink_bps > 0 for somewhere in sites]
    assert 5 < sum(covered) < 35  # a fair coin: 1e-6


@pytest.mark.parametrize(("below_sigmas", "hopeless"), [(1.0, False), (4.7, False), (4.8, True), (30.0, True)])
def test_redraws_help_unless_it_would_take_a_million(below_sigmas: float, hopeless: bool) -> None:
    radio = shannon({**GIVEN, "uplink_db": -10.0 - 6.0 * below_sigmas, "shadowing": REDRAWN})
    assert (radio.why_no_coverage(site()) is not None) is hopeless


def test_the_pure_bound_reaches_everybody() -> None:
    radio = shannon({**GIVEN, "uplink_db": -300.0}, profile="pure")
    assert radio.why_no_coverage(site()) is None
    assert 0 < radio.rates(site()).uplink_bps < 1e-20


def test_a_sensor_without_a_distance_is_refused_whatever_is_asked() -> None:
    for ask in (shannon().rates, shannon().why_no_coverage, shannon().budgets, lambda at: next(shannon().changes(at))):
        with pytest.raises(Misfit, match="the distance of sensor 'cam-1' to its base station is unknown"):
            ask(site(None))


@pytest.mark.parametrize(("keys", "excludes"), [({}, False), ({"out_of_coverage": "exclude"}, True)])
def test_who_is_not_covered_is_refused_or_left_out(keys: dict[str, Any], excludes: bool) -> None:
    assert shannon(**keys).excludes_uncovered is excludes


def test_a_device_can_use_all_of_the_carrier() -> None:
    rates = shannon().rates(site())
    assert rates == Rates(rates.uplink_bps, rates.downlink_bps, 1.0, 1.0)


def test_before_a_run_one_can_see_whom_the_category_holds_back() -> None:
    """1 MHz carries 1.38 Mbit/s up at 10 dB, and 3 of 8 ms of that are more than Cat M1's 375 kbit/s; at 6 dB not."""
    for uplink_db, held_back in ((10.0, True), (7.0, True), (6.0, False), (-9.0, False)):
        radio = shannon({**GIVEN, "uplink_db": uplink_db}, category="lte_m_m1")
        [cut], [uncut] = radio.rates_of([site()]), radio.uncut_of([site()])
        [whole] = shannon({**GIVEN, "uplink_db": uplink_db}).rates_of([site()])
        assert (uncut.uplink_bps, uncut.uplink_share) == (whole.uplink_bps * 0.375, 0.375)
        assert (cut.uplink_bps < uncut.uplink_bps) is held_back
        assert cut.uplink_bps == min(uncut.uplink_bps, 375e3)


def test_a_pattern_of_turns_divides_the_time() -> None:
    assert not shannon().divides_time
    assert shannon(tdd=TURNS).divides_time


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"snr": None}, "model_attributes_type|valid dictionary"),
        ({"snr": {"name": "guessed"}}, "'given', 'link_budget'"),
        ({"snr": {"name": "given", "uplink_db": 1.0}}, "Field required"),
        ({"snr": {**GIVEN, "uplink_db": math.nan}}, "finite number"),
        ({"bandwidth_hz": None}, "needs bandwidth_hz"),
        ({"out_of_coverage": "ignore"}, "'refuse' or 'exclude'"),
    ],
)
def test_a_radio_that_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Shannon(**{"profile": "pure", "bandwidth_hz": 1e6, "snr": GIVEN, **keys})
