"""Nominal rates: each named profile is what its standard's block sizes and cycles give, recomputed here."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pydantic import ValidationError
from radio_sites import site

from fedsim.radio.fixed import Fixed, profiles, technologies
from fedsim.radio.settings import Rates

MS = 1e-3


def nb_iot_uplink_bps(block_bits: float, resource_units: int, processes: int) -> float:
    """Blocks of H processes: control 1, gap 8, H times the block's 1 ms units, gap 3 ms (TS 36.213 cl. 16)."""
    return processes * block_bits / ((1 + 8 + processes * resource_units + 3) * MS)


def nb_iot_downlink_bps(block_bits: float, subframes: int, processes: int) -> float:
    """Control 1, gap 4, H times the block's subframes, gap 12, acknowledgement 2, gap 3 ms (TS 36.213 cl. 16)."""
    return processes * block_bits / ((1 + 4 + processes * subframes + 12 + 2 + 3) * MS)


def nr_bps(layers: int, bits_per_symbol: int, overhead: float, share_of_symbols: float) -> float:
    """TS 38.306 cl. 4.1.2 at 273 resource blocks of 12 carriers, 30 kHz, code rate 948/1024, times the TDD share."""
    symbol_s = 1e-3 / (14 * 2)
    return layers * bits_per_symbol * 948 / 1024 * 273 * 12 / symbol_s * (1 - overhead) * share_of_symbols


DDDSU_DOWN = (3 * 14 + 10) / (5 * 14)  # three slots and ten symbols of the special one, of five slots
DDDSU_UP = 14 / (5 * 14)

FROM_STANDARDS = {
    "nb_iot_nb1": (nb_iot_uplink_bps(1_000, 4, 1), nb_iot_downlink_bps(680, 4, 1)),
    "nb_iot_nb2": (nb_iot_uplink_bps(2_536, 10, 2), nb_iot_downlink_bps(2_536, 10, 2)),
    "lte_m_m1": (3 * 1_000 / (8 * MS), 3 * 1_000 / (10 * MS)),
    "lte_m_m2": (3 * 6_968 / (8 * MS), 10 * 4_008 / (17 * MS)),
    "lte_m_m2_full_duplex": (6_968 / MS, 4_008 / MS),
    "lte_m_m2_hfedms": (4e6, 7e6),  # as the paper has it
    "lte_cat4": (51_024 / MS, 150_752 / MS),
    "nr_100mhz_private": (nr_bps(1, 6, 0.08, DDDSU_UP), nr_bps(2, 8, 0.14, DDDSU_DOWN)),
}


@pytest.mark.parametrize("name", FROM_STANDARDS)
def test_a_profile_is_what_the_standard_gives(name: str) -> None:
    rates = Fixed(profile=name).rates(site())
    assert (rates.uplink_bps, rates.downlink_bps) == pytest.approx(FROM_STANDARDS[name], rel=1e-3)  # as printed


SHARES = {  # of the channel's time: what one device's blocks take of the cycle that gives its rate
    "nb_iot_nb1": (4 / (1 + 8 + 4 + 3), (1 + 4) / (1 + 4 + 4 + 12 + 2 + 3)),  # control is on the downlink carrier
    "nb_iot_nb2": (20 / (1 + 8 + 20 + 3), (1 + 20) / (1 + 4 + 20 + 12 + 2 + 3)),
    "lte_m_m1": (3 / 8, 3 / 10),
    "lte_m_m2": (3 / 8, 10 / 17),
}


@pytest.mark.parametrize("name", FROM_STANDARDS)
def test_a_profile_s_share_is_the_part_of_its_cycle_that_carries_blocks(name: str) -> None:
    rates = Fixed(profile=name).rates(site())
    assert (rates.uplink_share, rates.downlink_share) == pytest.approx(SHARES.get(name, (1, 1)), rel=1e-5)  # as printed


KINDS = {  # duplex of a device, discipline of a cell that names none
    "nb_iot_nb1": ("half", "fair"),
    "nb_iot_nb2": ("half", "fair"),
    "lte_m_m1": ("half", "fair"),
    "lte_m_m2": ("half", "fair"),
    "lte_m_m2_full_duplex": ("full", "fair"),
    "lte_m_m2_hfedms": ("full", "serial"),  # as the paper has it
    "lte_cat4": ("full", "fair"),
    "nr_100mhz_private": ("full", "fair"),
}
DIVIDED = {"nr_100mhz_private"}


@pytest.mark.parametrize("name", FROM_STANDARDS)
def test_a_profile_says_what_its_devices_and_base_stations_do(name: str) -> None:
    radio = Fixed(profile=name)
    assert (radio.device_duplex, radio.usual_discipline) == KINDS[name]
    assert radio.divides_time is (name in DIVIDED)
    assert technologies()[name].rates == profiles()[name]


def test_plain_rates_say_nothing_of_devices_and_go_one_after_the_other() -> None:
    radio = Fixed(uplink_bps=1.0, downlink_bps=2.0)
    assert (radio.device_duplex, radio.usual_discipline, radio.divides_time) == ("full", "serial", False)


def test_a_full_carrier_carries_its_blocks_back_to_back() -> None:
    """NB-IoT, 12 tones: 1000 b in 4 ms (250 kbit/s); LTE-M: 1000 b in each 1 ms of a narrowband."""
    assert profiles()["nb_iot_nb1"].uplink_bps / profiles()["nb_iot_nb1"].uplink_share == pytest.approx(250e3)
    narrowband = profiles()["lte_m_m1"]
    assert narrowband.uplink_bps / narrowband.uplink_share == pytest.approx(1e6)
    assert narrowband.downlink_bps / narrowband.downlink_share == pytest.approx(1e6)


def test_every_profile_is_recomputed_here() -> None:
    assert set(profiles()) == set(FROM_STANDARDS) >= set(SHARES)


def test_hundred_megahertz_of_256qam_give_584_megabits_a_layer() -> None:
    assert nr_bps(1, 8, 0.14, 1.0) == pytest.approx(584.25e6, rel=1e-4)


@pytest.mark.parametrize("rate_bps", [1.0, 1e9, math.inf])
def test_rates_may_be_given_as_numbers(rate_bps: float) -> None:
    assert Fixed(uplink_bps=rate_bps, downlink_bps=2.0).rates(site()) == Rates(rate_bps, 2.0, 1.0, 1.0)


def test_shares_may_be_given_with_rates() -> None:
    radio = Fixed(uplink_bps=1.0, downlink_bps=2.0, uplink_share=0.25, downlink_share=0.5)
    assert radio.rates(site()) == Rates(1.0, 2.0, uplink_share=0.25, downlink_share=0.5)


def test_fixed_rates_never_change_and_reach_everybody() -> None:
    radio = Fixed(profile="nb_iot_nb1")
    assert list(radio.changes(site())) == []
    assert radio.why_no_coverage(site(None)) is None
    assert not radio.excludes_uncovered


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "needs both uplink_bps and downlink_bps, or a profile"),
        ({"uplink_bps": 1.0}, "needs both uplink_bps and downlink_bps, or a profile"),
        ({"profile": "lte_m_m1", "uplink_bps": 1.0}, "a profile or rates, not both; leave one out"),
        (
            {"profile": "lte_m_m1", "uplink_share": 0.5},
            "uplink_share=0.5 is for given rates, and the profile has its own",
        ),
        ({"uplink_bps": 1.0, "downlink_bps": 1.0, "uplink_share": 0.0}, "greater than 0"),
        ({"uplink_bps": 1.0, "downlink_bps": 1.0, "downlink_share": 1.5}, "less than or equal to 1"),
        ({"profile": "lte_m1"}, "no radio profile is called 'lte_m1'; did you mean 'lte_m_m1'"),
        ({"profile": "smoke"}, r"no radio profile is called 'smoke' \(known: nb_iot_nb1, "),
        ({"uplink_bps": 0.0, "downlink_bps": 1.0}, "greater than 0"),
        ({"uplink_bps": -1.0, "downlink_bps": 1.0}, "greater than 0"),
        ({"uplink_bps": math.nan, "downlink_bps": 1.0}, "not NaN"),
        ({"uplink_bps": "4M", "downlink_bps": 1.0}, "valid number"),
        ({"profile": "lte_m_m1", "rate": 1.0}, "Extra inputs are not permitted"),
    ],
)
def test_a_radio_that_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Fixed(**keys)
