"""A carrier that its directions share in turns, and one whose devices can do only so much."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from radio_sites import BUDGET, GIVEN, shannon, site

from fedsim.radio.carrier import Carrier, TddPattern
from fedsim.radio.fixed import profiles, technologies
from fedsim.radio.settings import UpDown

DDDSU = {"slots": "DDDSU", "special_downlink_symbols": 10}
RATIOS = st.lists(st.floats(-300, 300) | st.sampled_from([-10.0, 14.9, 22.05, 0.0]), min_size=1, max_size=6)


def carrier(**keys: Any) -> Carrier:
    return Carrier(**{"profile": "lte_36942", "bandwidth_hz": 1e6, **keys})


# -- turns -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "symbols", "uplink", "downlink"),
    [
        ("DDDSU", 10, 0.2, 0.742857),
        ("DU", None, 0.5, 0.5),
        ("DDDDDDDSUU", 6, 0.2, (7 + 6 / 14) / 10),
        ("DSUUU", 0, 0.6, 0.2),
        ("DSSU", 12, 0.25, (1 + 24 / 14) / 4),
        ("D" * 19 + "U", None, 0.05, 0.95),
    ],
)
def test_the_directions_have_their_slots(slots: str, symbols: int | None, uplink: float, downlink: float) -> None:
    shares = TddPattern(slots=slots, special_downlink_symbols=symbols).time_shares
    assert shares == pytest.approx((uplink, downlink), abs=1e-6)


def peak_bps(layers: int, bits: int, overhead: float, time_share: float) -> float:
    """TS 38.306, 4.1.2, of one carrier with 273 blocks of 12 subcarriers at 30 kHz, in a part of the time."""
    symbol_s = 1e-3 / (14 * 2)
    return layers * bits * (948 / 1024) * 273 * 12 / symbol_s * (1 - overhead) * time_share


def test_a_nominal_rate_of_5g_is_its_peak_in_its_part_of_the_time() -> None:
    """2 layers of 256QAM down with an overhead of 14 %, one layer of 64QAM up with 8 %, in the pattern DDDSU."""
    shares, nominal = TddPattern(**DDDSU).time_shares, profiles()["nr_100mhz_private"]
    assert peak_bps(2, 8, 0.14, shares.downlink) == pytest.approx(nominal.downlink_bps, rel=1e-3)  # 868 Mbit/s
    assert peak_bps(1, 6, 0.08, shares.uplink) == pytest.approx(nominal.uplink_bps, rel=1e-3)  # 93.8 Mbit/s


@given(uplink_db=st.floats(-300, 300), downlink_db=st.floats(-300, 300))
def test_a_rate_has_the_part_of_the_time(uplink_db: float, downlink_db: float) -> None:
    ratios = UpDown(uplink_db, downlink_db)
    always, in_turns = carrier().rates_at(ratios), carrier(tdd=DDDSU).rates_at(ratios)
    assert in_turns.uplink_bps == pytest.approx(always.uplink_bps / 5)
    assert in_turns.downlink_bps == pytest.approx(always.downlink_bps * 26 / 35)
    assert (in_turns.uplink_share, in_turns.downlink_share) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("tdd", "message"),
    [
        ({"slots": "DDDFU"}, "slots='DDDFU' has 'F', and slots are D .*, S .* and U .*; write them like DDDSU"),
        ({"slots": "dddsu"}, "slots='dddsu' has 'd'"),
        ({"slots": ""}, "slots='' has no slot, and slots are"),
        (
            {"slots": "DDDS", "special_downlink_symbols": 3},
            "slots='DDDS' has no U, so there would be no uplink; add one",
        ),
        ({"slots": "UUU"}, "slots='UUU' has no D, so there would be no downlink; add one"),
        ({"slots": "DU" * 10 + "U"}, "are 21 and must be at most 20; write only what repeats"),
        (
            {"slots": "DDDSU"},
            "slots='DDDSU' has a special slot: say how many of its 14 symbols .* special_downlink_sym",
        ),
        (
            {"slots": "DU", "special_downlink_symbols": 0},
            "special_downlink_symbols=0 is for special slots, and .* none",
        ),
        ({**DDDSU, "special_downlink_symbols": 13}, "less than or equal to 12"),
        ({**DDDSU, "special_downlink_symbols": -1}, "greater than or equal to 0"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused(tdd: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        carrier(tdd=tdd)


def test_in_turns_there_is_one_band() -> None:
    message = r"uplink_bandwidth_hz=1e\+06 is for a band of its own, .* give bandwidth_hz alone, or leave tdd out"
    with pytest.raises(ValidationError, match=message):
        carrier(bandwidth_hz=None, uplink_bandwidth_hz=1e6, downlink_bandwidth_hz=1e6, tdd=DDDSU)


# -- categories --------------------------------------------------------------------------------------------------------


@given(uplink_db=st.floats(-300, 300), downlink_db=st.floats(-300, 300))
def test_a_device_of_a_category_uses_its_share_of_the_carrier_up_to_its_maximum(
    uplink_db: float, downlink_db: float
) -> None:
    """Cat M1: 3 of 8 ms up, 375 kbit/s at most; 3 of 10 ms down, 300 kbit/s."""
    whole, device = (carrier(category=one).rates_at(UpDown(uplink_db, downlink_db)) for one in (None, "lte_m_m1"))
    assert device.uplink_bps == min(whole.uplink_bps * 0.375, 375e3)
    assert device.downlink_bps == min(whole.downlink_bps * 0.3, 300e3)
    assert (device.uplink_share, device.downlink_share) == (0.375, 0.3)


@pytest.mark.parametrize("category", profiles())
def test_in_the_best_coverage_a_category_is_its_nominal_profile(category: str) -> None:
    technology = technologies()[category]
    keys = {"tdd": DDDSU} if technology.duplex == "tdd" else {}
    best = carrier(profile="pure", bandwidth_hz=technology.channel_hz, category=category, **keys)
    assert best.rates_at(UpDown(300.0, 300.0)) == profiles()[category]


@pytest.mark.parametrize("key", ["bandwidth_hz", "uplink_bandwidth_hz", "downlink_bandwidth_hz"])
def test_a_category_has_a_carrier_of_its_own_width(key: str) -> None:
    both = {"bandwidth_hz": None, "uplink_bandwidth_hz": 180e3, "downlink_bandwidth_hz": 180e3}
    wide = {"bandwidth_hz": 9e6} if key == "bandwidth_hz" else {**both, key: 9e6}
    message = rf"{key}=9e\+06 is more than one carrier of nb_iot_nb1 has \(200000\); .* carriers: how many there are"
    with pytest.raises(ValidationError, match=message):
        carrier(category="nb_iot_nb1", **wide)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"category": "nr_100mhz_private"},
            "nr_100mhz_private has one frequency for both directions, and no tdd is given; give its tdd pattern, or",
        ),
        (
            {"category": "lte_m_m1", "tdd": DDDSU},
            "lte_m_m1 has a frequency for each direction, and with tdd they take turns on one; leave tdd out, or name",
        ),
    ],
)
def test_a_category_takes_turns_or_not(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        carrier(**keys)


def test_an_unknown_category_gets_a_hand() -> None:
    message = r"no category is called 'lte_m1'; did you mean 'lte_m_m1'\? \(known: nb_iot_nb1, nb_iot_nb2, lte_m_m1"
    with pytest.raises(ValidationError, match=message):
        carrier(category="lte_m1")


# -- many at once ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["pure", "lte_36942", "nr_38803"])
@pytest.mark.parametrize(
    "keys", [{}, {"tdd": DDDSU}, {"category": "lte_m_m1"}, {"tdd": DDDSU, "category": "nr_100mhz_private"}]
)
@given(uplinks_db=RATIOS)
def test_each_of_many_rates_is_the_one_that_is_worked_out_alone(
    profile: str, keys: dict[str, Any], uplinks_db: list[float]
) -> None:
    """To the last bit."""
    one, downlinks_db = carrier(profile=profile, **keys), uplinks_db[::-1]
    together = one.carried(UpDown(np.array(uplinks_db), np.array(downlinks_db)))
    assert list(together) == [one.rates_at(UpDown(*each)) for each in zip(uplinks_db, downlinks_db, strict=True)]


# -- in a link budget --------------------------------------------------------------------------------------------------


def test_a_budget_has_a_row_for_what_a_carrier_has() -> None:
    plain, both = shannon(GIVEN), shannon(GIVEN, tdd=DDDSU, category="nr_100mhz_private")
    assert not {"share of time", "category maximum"} & {name for name, _, _ in plain.budgets(site()).uplink.rows()}
    names = [name for name, _, _ in both.budgets(site()).uplink.rows()]
    assert names[-6:] == [
        "spectral efficiency",
        "share of time",
        "share of the carrier",
        "rate without a maximum",
        "category maximum",
        "rate",
    ]


@pytest.mark.parametrize(
    "keys", [{"tdd": DDDSU}, {"category": "lte_m_m1"}, {"tdd": DDDSU, "category": "nr_100mhz_private"}]
)
def test_its_rows_make_the_rate(keys: dict[str, Any]) -> None:
    radio = shannon(BUDGET, **keys)
    for distance_m in (50.0, 900.0, 3_000.0):
        rates, way = radio.rates(site(distance_m)), radio.budgets(site(distance_m))
        for budget, rate_bps in ((way.uplink, rates.uplink_bps), (way.downlink, rates.downlink_bps)):
            value = {name: number for name, number, _ in budget.rows()}
            carried_bps = value["bandwidth"] * value["spectral efficiency"] * value.get("share of time", 1.0)
            carried_bps *= value.get("share of the carrier", 1.0)
            assert value.get("rate without a maximum", carried_bps) == carried_bps
            assert value["rate"] == min(carried_bps, value.get("category maximum", math.inf)) == rate_bps
