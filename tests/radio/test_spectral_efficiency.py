"""Bits on a hertz: Shannon's bound, and the ends that TR 36.942 and TR 38.803 give to its attenuated form."""

from __future__ import annotations

import csv
import math
from importlib import resources
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim.radio.carrier import Carrier
from fedsim.radio.efficiency import efficiencies, shannon_bps_per_hz
from fedsim.radio.settings import UpDown

PROFILES = get_args(Carrier.model_fields["profile"].annotation)
DIRECTIONS = ("uplink", "downlink")
DECIBELS = st.floats(-300, 300)


def db(ratio: float) -> float:
    return 10 * math.log10(ratio)


@pytest.mark.parametrize(("snr", "bits"), [(1, 1), (3, 2), (7, 3), (1023, 10), (1 / 3, math.log2(4 / 3))])
def test_shannon_s_bound(snr: float, bits: float) -> None:
    assert shannon_bps_per_hz(db(snr)) == pytest.approx(bits, rel=1e-12)


def test_far_above_the_noise_twice_the_power_is_one_bit_more() -> None:
    assert shannon_bps_per_hz(60 + db(2)) - shannon_bps_per_hz(60) == pytest.approx(1, abs=1e-5)


def test_far_below_the_noise_a_bit_costs_the_ultimate_1_59_db() -> None:
    """Eb/N0 = SNR / (bits per second and hertz) falls to ln 2, -1.59 dB, and no lower (Shannon, 1949)."""
    energy_per_bit_db = [snr_db - db(shannon_bps_per_hz(snr_db)) for snr_db in (-20, -40, -80, -300)]
    assert energy_per_bit_db == sorted(energy_per_bit_db, reverse=True)
    assert energy_per_bit_db[-1] == pytest.approx(-1.5917, abs=1e-4)


@pytest.mark.parametrize("snr_db", [-5_000.0, 5_000.0])
def test_no_ratio_is_too_large_for_the_arithmetic(snr_db: float) -> None:
    expected = max(0.0, snr_db / 10 * math.log2(10))
    assert shannon_bps_per_hz(snr_db) == pytest.approx(expected)


SATURATION = {  # profile, direction: (SNR of the densest modulation, bits per second and hertz), as printed
    ("lte_36942", "downlink"): (22.05, 4.4),  # TR 36.942, table A.1
    ("lte_36942", "uplink"): (14.91, 2.0),
    ("nr_38803", "downlink"): (30.0, 5.98),  # TR 38.803, 5.2.7: 0.6 log2(1 + 10^3)
    ("nr_38803", "uplink"): (22.0, 2.93),
}


@pytest.mark.parametrize(("profile", "direction"), SATURATION)
def test_the_attenuated_bound_meets_its_cap_where_3gpp_says(profile: str, direction: str) -> None:
    snr_db, most = SATURATION[profile, direction]
    efficiency = getattr(efficiencies()[profile], direction)
    uncapped = efficiency.alpha * math.log2(1 + 10 ** (snr_db / 10))
    assert uncapped == pytest.approx(most, abs=0.005)
    assert efficiency.bps_per_hz(snr_db) == pytest.approx(most, abs=0.005)
    assert efficiency.bps_per_hz(snr_db + 50) == most


@pytest.mark.parametrize(("direction", "alpha"), [("uplink", 0.4), ("downlink", 0.6)])
@pytest.mark.parametrize("profile", ["lte_36942", "nr_38803"])
def test_3gpp_s_fits_are_a_part_of_the_bound_from_minus_10_db_on(profile: str, direction: str, alpha: float) -> None:
    efficiency = getattr(efficiencies()[profile], direction)
    assert efficiency.bps_per_hz(-10.0) == pytest.approx(alpha * math.log2(1.1))
    assert efficiency.bps_per_hz(10.0) == pytest.approx(alpha * math.log2(11))
    assert efficiency.bps_per_hz(math.nextafter(-10.0, -math.inf)) == 0.0


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("profile", PROFILES)
@given(one_db=DECIBELS, other_db=DECIBELS)
def test_more_signal_never_carries_less_nor_more_than_the_bound(
    profile: str, direction: str, one_db: float, other_db: float
) -> None:
    efficiency = getattr(efficiencies()[profile], direction)
    less, more = sorted((one_db, other_db))
    assert 0 <= efficiency.bps_per_hz(less) <= efficiency.bps_per_hz(more) <= shannon_bps_per_hz(more)


def test_every_profile_has_both_directions_and_a_source() -> None:
    with (resources.files("fedsim.radio") / "efficiency.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["profile"], row["direction"]) for row in rows] == [(p, d) for p in PROFILES for d in DIRECTIONS]
    assert all(row["source"] for row in rows)


def test_a_rate_is_bandwidth_times_bits_on_a_hertz() -> None:
    carrier = Carrier(profile="pure", uplink_bandwidth_hz=15e3, downlink_bandwidth_hz=180e3)
    rates = carrier.rates_at(UpDown(db(3), db(7)))
    assert (rates.uplink_bps, rates.downlink_bps) == pytest.approx((30e3, 540e3))
    assert (rates.uplink_share, rates.downlink_share) == (1, 1)


def test_one_bandwidth_is_for_both_directions() -> None:
    one = Carrier(profile="nr_38803", bandwidth_hz=5e6)
    two = Carrier(profile="nr_38803", uplink_bandwidth_hz=5e6, downlink_bandwidth_hz=5e6)
    assert one.rates_at(UpDown(1.0, 2.0)) == two.rates_at(UpDown(1.0, 2.0))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "needs bandwidth_hz, or both uplink_bandwidth_hz and downlink_bandwidth_hz"),
        ({"uplink_bandwidth_hz": 1e6}, "needs bandwidth_hz, or both uplink_bandwidth_hz and downlink_bandwidth_hz"),
        ({"bandwidth_hz": 1e6, "uplink_bandwidth_hz": 1e6}, r"bandwidth_hz=1e\+06 is for both directions already"),
        ({"bandwidth_hz": 1e6, "downlink_bandwidth_hz": 1e6}, "is for both directions already; leave one out"),
        ({"bandwidth_hz": 0.0}, "greater than 0"),
        ({"bandwidth_hz": math.inf}, "finite number"),
        ({"bandwidth_hz": 1e6, "profile": "lte"}, "'pure', 'lte_36942' or 'nr_38803'"),
    ],
)
def test_a_carrier_that_makes_no_sense_is_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Carrier(**{"profile": "pure", **keys})
