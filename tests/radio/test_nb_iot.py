"""NB-IoT: cycles as published, coverage by coupling loss, and laws that its tables keep."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from radio_sites import site
from tiers import drawn

from fedsim.radio.budget import noise_dbm
from fedsim.radio.nb_iot.coverage import coverage_classes
from fedsim.radio.nb_iot.cycles import down_cycle_ms, up_cycle_ms
from fedsim.radio.nb_iot.radio import NbIot
from fedsim.radio.nb_iot.random_access import RandomAccess
from fedsim.radio.nb_iot.tables import UP_REPETITIONS, NeededSnr, down_blocks, needed_snr, up_blocks
from fedsim.radio.settings import Rates, UpDown

GOOD = {"name": "given", "uplink_db": 60.0, "downlink_db": 60.0}
NOISE_DBM = noise_dbm(180e3)


def nb_iot(**keys: Any) -> NbIot:
    """A radio that nothing holds back, in best coverage, unless *keys* say otherwise."""
    return NbIot(**{"snr": GOOD, "random_access": (), "block_errors": "none", "anchor": False, **keys})


def at_loss(coupling_loss_db: float, **keys: Any) -> Rates:
    """The rates of the acceptance of NB1: an anchor of 43 dBm, a device of 23 dBm, mean block errors."""
    down_db = 43 - coupling_loss_db - NOISE_DBM - 5
    up_db = 23 - coupling_loss_db - NOISE_DBM - 3
    radio = nb_iot(anchor=True, block_errors="mean", **keys)
    [rates] = radio.rates_at_all(UpDown(np.array([up_db]), np.array([down_db])))
    return rates


def best(**keys: Any) -> Rates:
    radio = nb_iot(**keys)
    [rates] = radio.rates_at_all(UpDown(np.array([60.0]), np.array([60.0])))
    return rates


# -- rates by coupling loss -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("coupling_loss_db", "down_kbps", "up_kbps", "within"),
    [(144.0, 17.5, 31.8, 0.15), (154.0, 4.8, 5.2, 0.5), (164.0, 1.4, 0.32, 0.5)],
)
def test_rates_at_the_three_coupling_losses_of_tr_45_820(
    coupling_loss_db: float, down_kbps: float, up_kbps: float, within: float
) -> None:
    rates = at_loss(coupling_loss_db)
    assert rates.downlink_bps == pytest.approx(1e3 * down_kbps, rel=within)
    assert rates.uplink_bps == pytest.approx(1e3 * up_kbps, rel=within)


def test_a_device_at_144_db_by_hand() -> None:
    """Control 4/3 ms, gaps of 8 and 3 ms, 16 ms of data: 1000 bits in 28.33 ms, of which a tenth fails."""
    rates = at_loss(144.0)
    assert rates.uplink_bps == pytest.approx(0.9 * 1000 / (4 / 3 + 8 + 16 + 3) * 1e3)
    assert rates.uplink_format.duty == pytest.approx(16 / (4 / 3 + 8 + 16 + 3))
    assert rates.uplink_share == pytest.approx(rates.uplink_format.duty / 2)  # six tones, of twelve, do as well
    assert (rates.uplink_format.block_bits, rates.uplink_format.repetitions) == (1000, 2)


def test_in_bad_coverage_a_device_puts_its_power_into_few_tones() -> None:
    rows = [at_loss(loss_db).uplink_format.row.split(",")[0] for loss_db in (130.0, 150.0)]
    assert rows == ["12 tones", "3 tones"]
    alone = at_loss(150.0, tones=(1,)).uplink_format.row
    assert alone.startswith("1 tone, ")
    narrow = at_loss(150.0, tones=(), narrow_tone=True)
    assert narrow.uplink_format.row.startswith("1 tone of 3.75 kHz, ")
    assert narrow.uplink_share == pytest.approx(narrow.uplink_format.duty / 48)


# -- the best coverage ------------------------------------------------------------------------------------------------


def test_the_best_uplink_of_nb1_and_what_it_takes() -> None:
    rates = best()
    assert rates.uplink_bps == pytest.approx(62_500.0)
    assert rates.uplink_share == rates.uplink_format.duty == pytest.approx(4 / 16)
    assert rates.uplink_bps / rates.uplink_share == pytest.approx(250e3)


def test_the_best_downlink_of_nb1() -> None:
    """I_TBS 12 has 680 bits in three subframes: 25 ms, and 27.2 kbit/s is the most of what is published."""
    rates = best()
    assert rates.downlink_bps == rates.downlink_format.most_bps == pytest.approx(680 / 25 * 1e3)
    assert rates.downlink_format.row == "3 subframes, I_TBS 12, 680 bits, sent once"
    assert rates.downlink_share == rates.downlink_format.duty == pytest.approx(4 / 25)


def test_a_carrier_inside_lte_has_no_blocks_beyond_i_tbs_10() -> None:
    assert best(deployment="in_band").downlink_bps == pytest.approx(680 / down_cycle_ms(4) * 1e3)
    assert best(deployment="guard_band").downlink_bps == best().downlink_bps


def test_an_anchor_has_fewer_subframes_for_data() -> None:
    cycle_ms = (1 + 3) / 0.75 + 4 + 12 + 2 + 3
    assert best(anchor=True).downlink_bps == pytest.approx(680 / cycle_ms * 1e3)
    assert best(anchor=True).downlink_share == pytest.approx((1 + 3) / 0.75 / cycle_ms)
    assert best(anchor=True, anchor_free=0.5).downlink_bps < best(anchor=True).downlink_bps


def test_two_processes_send_two_blocks_in_a_cycle() -> None:
    one, two = best(category="nb2"), best(category="nb2", harq_processes=2)
    assert two.uplink_bps == pytest.approx(2 * 2536 / 32 * 1e3)
    assert two.downlink_bps == pytest.approx(2 * 2536 / 42 * 1e3)
    assert (two.uplink_format.most_bps, two.downlink_format.most_bps) == (two.uplink_bps, two.downlink_bps)
    assert (one.uplink_format.grant_bits, two.uplink_format.grant_bits) == (2536, 2 * 2536)
    assert one.uplink_bps == pytest.approx(2536 / 22 * 1e3)


def test_random_access_is_taken_from_the_carrier_not_from_the_device() -> None:
    """12 of 48 subcarriers for 5.6 ms of each 40 are 3.5 %."""
    without, with_it = best(), best(random_access=[{"period_ms": 40}])
    assert RandomAccess(period_ms=40).part == pytest.approx(0.035)
    assert with_it.uplink_bps == without.uplink_bps
    assert with_it.uplink_share == pytest.approx(without.uplink_share / 0.965)


def test_no_more_is_sent_than_random_access_leaves() -> None:
    """At -8 dB a block of NB2 would take nine tenths of the carrier, and random access leaves less than half of it."""
    ratios_db = UpDown(np.array([-8.0]), np.array([60.0]))
    crowded = [RandomAccess(subcarriers=48, repetitions=4, period_ms=40)]
    [crowd] = nb_iot(category="nb2", tones=(12,), random_access=crowded).rates_at_all(ratios_db)
    left = 1 - 4 * 5.6 / 40
    row = crowd.uplink_format
    units = int(row.row.split(", ")[1].split()[0])
    assert crowd.uplink_share == 1.0
    assert crowd.uplink_bps == pytest.approx(left * row.block_bits / (units * row.repetitions) * 1e3)
    assert row.duty == pytest.approx(left)


@pytest.mark.parametrize(("period_ms", "cycle_ms"), [(4.0, 16.0), (10.0, 20.0), (64.0, 64.0)])
def test_a_cycle_ends_where_the_next_control_message_can_begin(period_ms: float, cycle_ms: float) -> None:
    rates = best(control_period_ms=(period_ms, 10 * period_ms, 20 * period_ms))
    assert rates.uplink_bps == pytest.approx(1000 / cycle_ms * 1e3)
    assert rates.uplink_format.duty == pytest.approx(4 / cycle_ms)


def test_each_coverage_class_has_its_own_period() -> None:
    slow = at_loss(150.0, control_period_ms=(4.0, 256.0, 512.0))
    assert slow.coverage_class == 1
    assert slow.uplink_bps == pytest.approx(0.9 * slow.uplink_format.block_bits / 256 * 1e3)


@pytest.mark.parametrize(
    ("block_errors", "part", "drawn_part"), [("mean", 0.9, 0.0), ("none", 1.0, 0.0), ("drawn", 1.0, 0.1)]
)
def test_block_errors_are_in_the_rate_or_drawn_or_left_out(block_errors: str, part: float, drawn_part: float) -> None:
    rates = best(block_errors=block_errors)
    assert rates.uplink_bps == pytest.approx(part * 62_500)
    assert rates.uplink_format.block_errors == rates.downlink_format.block_errors == drawn_part
    assert rates.uplink_format.most_bps == pytest.approx(part * 62_500)
    assert rates.uplink_share == pytest.approx(0.25)


# -- what one direction asks of the other -----------------------------------------------------------------------------


def test_a_bad_uplink_lengthens_the_cycles_of_the_downlink() -> None:
    """At -9.6 dB over twelve tones, data is repeated, and so are acknowledgements: of 2 ms each."""
    radio = nb_iot()
    answers = int(radio.answers(np.array([-12.6]))[0])
    [rates] = radio.rates_at_all(UpDown(np.array([-12.6]), np.array([60.0])))
    assert answers > 1
    assert radio.answers(np.array([-40.0, -12.0, -9.0, -4.0, 10.0])).tolist() == [32, 16, 8, 2, 1]
    assert rates.downlink_bps == pytest.approx(680 / (25 + 2 * (answers - 1)) * 1e3)


def test_a_bad_downlink_lengthens_the_cycles_of_the_uplink() -> None:
    radio = nb_iot()
    control = int(radio.controls(np.array([-5.0]))[0])
    [rates] = radio.rates_at_all(UpDown(np.array([60.0]), np.array([-5.0])))
    needed = needed_snr()["stand_alone_down"]
    assert control == 16 and needed.db(0, 16) <= -5.0 < needed.db(0, 8)
    assert rates.uplink_bps == pytest.approx(1000 / up_cycle_ms(4, control=16) * 1e3)
    assert rates.downlink_format.row == "8 subframes, I_TBS 5, 680 bits, sent 32 times"
    assert rates.downlink_bps == pytest.approx(680 / down_cycle_ms(8, 32, control=16) * 1e3)
    assert rates.downlink_share == rates.downlink_format.duty == pytest.approx((16 + 8 * 32) / (16 + 8 * 32 + 21))


def test_of_many_each_has_the_rates_of_its_own_class_and_repeats() -> None:
    radio = nb_iot(control_period_ms=(4.0, 64.0, 640.0))
    ups_db, downs_db = [60.0, 60.0, -12.0, -12.0, 3.0], [60.0, -5.0, 60.0, -5.0, 20.0]
    together = radio.rates_at_all(UpDown(np.array(ups_db), np.array(downs_db)))
    pairs = zip(ups_db, downs_db, strict=True)
    alone = [one for up, down in pairs for one in radio.rates_at_all(UpDown(np.array([up]), np.array([down])))]
    assert list(together) == alone and len(set(alone)) == 5


def test_inside_lte_control_messages_need_more() -> None:
    """6.831 - 1.635 - 2.818 lg2 n dB, and 7.3 - 1.592 - 3.107 lg2 n on a carrier of its own."""
    inside, alone = (nb_iot(deployment=where) for where in ("in_band", "stand_alone"))
    ratios_db = np.array([-60.0, -6.5])
    assert (inside.controls(ratios_db).tolist(), alone.controls(ratios_db).tolist()) == ([2048, 32], [2048, 16])
    assert inside.least_snr_db.downlink == pytest.approx(6.831 - 1.635 - 2.818 * 11)


@pytest.mark.parametrize(
    ("keys", "least_db", "row", "bps"),
    [
        ({"tones": (12,)}, -0.21 - 2.648 - 7 * 2.42, "12 tones, 4 resource units, I_TBS 12, ", 1000e3 / 16),
        ({"tones": (3,)}, -0.21 - 2.648 - 7 * 2.42 - 6.0206, "3 tones, 4 resource units, I_TBS 12, ", 1000e3 / 28),
        ({"tones": (1,)}, 3.758 + 0.345 - 7 * 2.407 - 10.7918, "1 tone, 5 resource units, I_TBS 10, ", 872e3 / 52),
        (
            {"tones": (), "narrow_tone": True},
            3.758 + 0.345 - 7 * 2.407 - 16.8124,
            "1 tone of 3.75 kHz, 5 resource units, I_TBS 10, ",
            872e3 / 172,
        ),
    ],
)
def test_the_lowest_and_the_best_uplink_of_each_number_of_tones(
    keys: dict[str, Any], least_db: float, row: str, bps: float
) -> None:
    """128 repetitions, 10 lg (12 / tones) nearer and 3 dB of gain; units of 1, 4, 8 and 32 ms, and 12 ms around."""
    rates = best(**keys)
    assert nb_iot(**keys).least_snr_db.uplink == pytest.approx(least_db - 3, abs=1e-4)
    assert rates.uplink_bps == pytest.approx(bps) and rates.uplink_format.row.startswith(row)


def test_out_of_reach_there_is_no_rate() -> None:
    [rates] = nb_iot().rates_at_all(UpDown(np.array([-60.0]), np.array([-60.0])))
    assert (rates.uplink_bps, rates.downlink_bps) == (0.0, 0.0)
    least_db = nb_iot().least_snr_db
    edge = nb_iot().rates_at_all(UpDown(np.array([least_db.uplink]), np.array([least_db.downlink])))
    assert edge.uplink_bps[0] > 0 and edge.downlink_bps[0] > 0


@drawn(60)
@given(
    category=st.sampled_from(["nb1", "nb2"]),
    anchor=st.booleans(),
    narrow_tone=st.booleans(),
    periods=st.sampled_from([None, (4.0, 64.0, 640.0), (10.0, 30.0, 30.0)]),
    one_db=st.floats(-30, 40),
    other_db=st.floats(-30, 40),
    worse_db=st.floats(0, 20),
)
def test_a_rate_never_rises_when_a_ratio_falls(
    category: str,
    anchor: bool,
    narrow_tone: bool,
    periods: tuple[float, float, float] | None,
    one_db: float,
    other_db: float,
    worse_db: float,
) -> None:
    """Of either direction, in whatever class that is."""
    radio = nb_iot(category=category, anchor=anchor, narrow_tone=narrow_tone, control_period_ms=periods)
    ups, downs = (np.array([one_db, one_db - worse_db, one_db]), np.array([other_db, other_db, other_db - worse_db]))
    rates = radio.rates_at_all(UpDown(ups, downs))
    for worse in (1, 2):
        assert rates.uplink_bps[worse] <= rates.uplink_bps[0]
        assert rates.downlink_bps[worse] <= rates.downlink_bps[0]
    for one in rates:
        assert 0 < one.uplink_share <= 1 and 0 < one.downlink_share <= 1
        assert 0 <= one.uplink_format.duty <= 1 and 0 <= one.downlink_format.duty <= 1
        assert one.uplink_bps <= one.uplink_format.most_bps and one.downlink_bps <= one.downlink_format.most_bps


@pytest.mark.parametrize("other_db", [-12.0, 3.0, 30.0])
def test_along_one_ratio_no_rate_ever_steps_down(other_db: float) -> None:
    """In steps of 0.02 dB; a row with fewer repetitions may be the best between two with more."""
    along_db = np.arange(-30.0, 40.0, 0.02)
    others_db = np.full(len(along_db), other_db)
    for ratios_db in (UpDown(along_db, others_db), UpDown(others_db, along_db)):
        rates = nb_iot().rates_at_all(ratios_db)
        assert (np.diff(rates.uplink_bps) >= 0).all() and (np.diff(rates.downlink_bps) >= 0).all()


# -- tables and ratios ------------------------------------------------------------------------------------------------


def test_blocks_of_a_category_are_as_large_as_its_standard_says() -> None:
    assert [max(block.bits for block in down_blocks(name)) for name in ("nb1", "nb2")] == [680, 2536]
    assert [max(block.bits for block in up_blocks(name)) for name in ("nb1", "nb2")] == [1000, 2536]


def test_more_repetitions_need_less_and_larger_blocks_more() -> None:
    for needed in needed_snr().values():
        by_repetitions = [needed.db(5, number) for number in UP_REPETITIONS]
        assert by_repetitions == sorted(by_repetitions, reverse=True)
        assert needed.db(6, 4) > needed.db(5, 4)
    assert [NeededSnr(1.0, 0.5, 2.0, 3.0).db(4, number) for number in (1, 2, 8)] == [3.0, -2.0, -8.0]


# -- coverage classes -------------------------------------------------------------------------------------------------


def test_classes_begin_beyond_144_and_154_db() -> None:
    losses_db = np.array([100.0, 144.0, 144.01, 154.0, 154.01, 200.0])
    assert coverage_classes(losses_db, 3.0, None).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_device_goes_back_only_beyond_the_hysteresis() -> None:
    before = np.array([1, 1, 2, 2, 2, 0], np.int8)
    losses_db = np.array([141.0, 142.0, 151.0, 153.0, 143.0, 150.0])
    assert coverage_classes(losses_db, 3.0, before).tolist() == [0, 1, 1, 2, 1, 1]
    assert coverage_classes(losses_db, 0.0, before).tolist() == [0, 0, 1, 1, 0, 1]


def test_the_class_follows_the_shadow_with_hysteresis() -> None:
    """Ratios of 12 dB are 147.45 dB of coupling loss on the reference link; with 10 dB of shadow they come and go."""
    shadow = {"sigma_db": 4.0, "redraw_every_s": 1.0}
    steady, loose = (
        nb_iot(snr={**GOOD, "downlink_db": 15.0, "shadowing": shadow}, hysteresis_db=hysteresis_db)
        for hysteresis_db in (6.0, 0.0)
    )
    changes = []
    for radio in (steady, loose):
        seen = [radio.rates(site()), *(rates for (_, rates), _ in zip(radio.changes(site()), range(200), strict=False))]
        classes = [rates.coverage_class for rates in seen]
        assert set(classes) >= {0, 1}
        changes.append(sum(one != other for one, other in pairwise(classes)))
    assert 0 < changes[0] < changes[1]


def test_a_weaker_station_shifts_ratios_and_leaves_classes_alone() -> None:
    link = {
        "name": "link_budget",
        "carrier_hz": 0.9e9,
        "device_power_dbm": 23.0,
        "station_power_dbm": 35.0,
        "device_noise_figure_db": 5.0,
        "station_noise_figure_db": 3.0,
        "path_loss": {"name": "log_distance", "exponent": 2.0, "reference_distance_m": 1.0, "reference_loss_db": 150.0},
    }
    strong = nb_iot(snr={**link, "station_power_dbm": 43.0}).rates(site(1.0))
    weak = nb_iot(snr=link).rates(site(1.0))
    assert strong.coverage_class == weak.coverage_class == 1
    assert weak.downlink_bps < strong.downlink_bps


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"harq_processes": 2}, "harq_processes=2 is for category nb2"),
        ({"tones": ()}, "leaves no way to send"),
        ({"tones": (2,)}, "1, 3, 6 or 12"),
        ({"control_period_ms": (1.0, 4.0, 4.0)}, "1 must be from 4 to 131072"),
        ({"control_period_ms": (4.0,)}, "Field required"),
        ({"control_period_ms": (8.0, 12.0, 24.0)}, "12 must be a multiple of 8, the period of the class before"),
        ({"random_access": [{"subcarriers": 48, "repetitions": 128, "period_ms": 640}]}, "random access takes 112 % "),
        ({"anchor": False, "anchor_free": 0.5}, "anchor_free=0.5 is for an anchor, and anchor=false"),
        ({"random_access": [{}, {}, {}, {}]}, "4 entries, and there are 3 coverage classes"),
        ({"category": "nb3"}, "'nb1' or 'nb2'"),
    ],
)
def test_a_radio_that_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        nb_iot(**keys)


def test_sums_of_its_budget() -> None:
    radio = nb_iot(snr={"name": "given", "uplink_db": -2.0, "downlink_db": 15.0})
    rates, (up, down) = radio.rates(site()), radio.budgets(site())
    assert [radio.budget_at(way, None, 0.0, UpDown(-2.0, 15.0)) for way in (0, 1)] == [up, down]
    assert (up.rate_bps, down.rate_bps) == (rates.uplink_bps, rates.downlink_bps)
    assert (up.row, down.row) == (rates.uplink_format.row, rates.downlink_format.row)
    value = {name: number for name, number, _ in up.rows()}
    assert value["needed SNR"] <= -2.0 and math.isclose(value["share of the carrier"], rates.uplink_share)
