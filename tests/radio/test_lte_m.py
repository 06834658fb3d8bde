"""LTE-M: cycles of Cat M1 and M2, repetitions and modes in bad coverage, narrow uplinks, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from radio_sites import site
from technologies import along, at, best, lte_m

from fedsim.radio.lte_m.modes import mode_a_from_db
from fedsim.radio.lte_m.rows import controls, mode_of
from fedsim.radio.lte_m.timing import full_duplex_down, full_duplex_up, half_duplex_down, half_duplex_up

# -- cycles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "down_kbps", "up_kbps"),
    [
        ({}, 300.0, 375.0),
        ({"release": 13}, 300.0, 375.0),
        ({"bundling": True}, 8 / 14 * 1e3, 375.0),
        ({"bundling": True, "harq_processes": 10}, 10 / 17 * 1e3, 375.0),
        ({"large_uplink_blocks": True}, 300.0, 3 * 2984 / 8),
        ({"duplex": "full"}, 800.0, 1000.0),
        ({"duplex": "full", "harq_processes": 10}, 1000.0, 1000.0),
        ({"duplex": "full", "large_uplink_blocks": True}, 800.0, 2984.0),
        ({"category": "m2"}, 3 * 4008 / 10, 3 * 6968 / 8),
        ({"category": "m2", "bundling": True, "harq_processes": 10}, 10 * 4008 / 17, 3 * 6968 / 8),
        ({"category": "m2", "duplex": "full", "harq_processes": 10}, 4008.0, 6968.0),
    ],
)
def test_the_best_rates_of_each_feature(keys: dict[str, Any], down_kbps: float, up_kbps: float) -> None:
    rates = best(lte_m(**keys))
    assert rates.downlink_bps == pytest.approx(1e3 * down_kbps)
    assert rates.uplink_bps == pytest.approx(1e3 * up_kbps)
    assert (rates.downlink_format.most_bps, rates.uplink_format.most_bps) == (rates.downlink_bps, rates.uplink_bps)


@pytest.mark.parametrize(("mode", "keys"), [("half", {}), ("half", {"bundling": True}), ("full", {})])
def test_cat_m1_has_no_rate_above_its_best_at_any_ratio(mode: str, keys: dict[str, Any]) -> None:
    ratios_db = np.arange(-60.0, 100.0, 0.1)
    rates = along(lte_m(duplex=mode, **keys), ratios_db, ratios_db)
    most_up, most_down = {"half": (375e3, 571.43e3 if keys else 300e3), "full": (1000e3, 800e3)}[mode]
    assert rates.uplink_bps.max() <= most_up and rates.downlink_bps.max() <= most_down


def test_a_cycle_that_is_repeated_by_hand() -> None:
    """Down: 2 control, a gap, 16 data, three gaps, 2 acknowledgements, a switch. Up: 2, 3 gaps, 16, a switch."""
    assert half_duplex_down(1, 16, 2) == 2 + 1 + 16 + 3 + 2 + 1 and half_duplex_down(3, 1, 1) == 10
    assert half_duplex_down(3, 2, 1) == 1 + 1 + 3 * 2 + 1 + 3 + 1
    assert half_duplex_up(1, 16, 2) == 2 + 3 + 16 + 1
    assert (
        half_duplex_up(3, 1, 4) == 3 * 4 + 1 + 3 + 1 and half_duplex_down(8, 1, 1, bundled=4) == 1 + 1 + 8 + 1 + 2 + 1
    )
    assert full_duplex_down(8, 16, 2) == full_duplex_up(8, 16, 2) == 8 * 16
    assert full_duplex_down(8, 1, 4) == 4 + 1 + 1 + 3 + 4 + 3 and full_duplex_up(8, 1, 4) == 4 + 3 + 1 + 3


def test_a_repeated_block_by_hand() -> None:
    """Up 528 bits on 144 elements, 128 times: 0.0286 bits each, so 4 controls. Down 832 on 720: 0.0090, so 8."""
    up, down = at(lte_m(), -21.0, 20.0), at(lte_m(), 20.0, -14.0)
    assert up.uplink_bps == pytest.approx(504 / (4 + 3 + 128 + 1) * 1e3)
    assert down.downlink_bps == pytest.approx(808 / (8 + 1 + 128 + 3 + 8 + 1) * 1e3)
    assert (down.downlink_share, down.downlink_format.duty) == pytest.approx((128 / 149, (8 + 1 + 128) / 149))
    assert best(lte_m(duplex="full")).downlink_format.duty == pytest.approx(8 / 10)


@pytest.mark.parametrize(
    ("keys", "up", "down"),
    [
        ({}, [3, 1, 1], [3, 1, 1]),
        ({"bundling": True}, [3, 1, 1], [8, 1, 1]),
        ({"duplex": "full", "harq_processes": 10}, [8, 8, 8], [10, 10, 10]),
    ],
)
def test_as_many_blocks_are_sent_in_a_cycle_as_it_holds(keys: dict[str, Any], up: list[int], down: list[int]) -> None:
    directions = [lte_m(**keys)._direction("a", uplink=uplink) for uplink in (True, False)]
    assert [[one.blocks_of_cycle(times) for times in (1, 2, 4)] for one in directions] == [up, down]


@pytest.mark.parametrize("category", ["m1", "m2"])
def test_modes_have_the_blocks_of_the_standard(category: str) -> None:
    """TS 36.213 tables 7.1.7.1-1 and 8.6.1-1: 16QAM from I_TBS 9 on down and 10 up, and none in mode B."""
    sizes = {"m1": (1, 2, 3, 4, 5, 6), "m2": (1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 18, 20, 24)}[category]
    for uplink, first, columns in ((True, 10, ((1, 3), (2, 6))), (False, 9, ((4, 4), (6, 6)))):
        mode_a, mode_b = (mode_of(lte_m(category=category)._direction(mode, uplink=uplink)) for mode in ("a", "b"))
        own = sizes if uplink else range(1, sizes[-1] + 1)
        assert mode_a.columns == tuple((size, size) for size in own) and mode_b.columns == columns
        assert (mode_a.most_i_tbs, mode_b.most_i_tbs) == (14, first)
        assert [mode_a.modulation_of(i_tbs, uplink=uplink) for i_tbs in (first - 1, first)] == [2, 4]
        assert [mode_b.modulation_of(i_tbs, uplink=uplink) for i_tbs in (first - 1, first)] == [2, 2]


def test_a_control_message_is_repeated_as_its_protection_asks() -> None:
    """50 bits over 720 elements are 0.0694 bits each; 16 times they are 0.0043."""
    assert [controls(efficiency) for efficiency in (1.0, 0.07, 0.069, 0.0043, 1e-6)] == [1, 1, 2, 32, 256]


def test_the_share_is_that_of_a_narrowband_in_time_and_frequency() -> None:
    """936 bits in 6 resource blocks: 3 of 8 ms; 1000 bits in 5 of them, and at better ratios in 4."""
    radio = lte_m()
    seen = {row.format.row: row for row in (*radio.tables.uplink.rows, *radio.tables.downlink.rows)}
    up = seen["I_TBS 9, 936 bits, 6 PRB, sent once, CE mode A"]
    five, four = (next(row for text, row in seen.items() if f"1000 bits, {n} PRB, sent once" in text) for n in (5, 4))
    assert (up.share, up.format.duty, up.bps) == pytest.approx((3 / 10, 5 / 10, 280.8e3))  # the downlink's comes last
    assert five.share / four.share == pytest.approx(5 / 4) and five.bps == four.bps and five.snr_db < four.snr_db
    rates = best(radio)
    assert (rates.uplink_share, rates.uplink_format.duty) == pytest.approx((3 / 8 * 4 / 6, 3 / 8))
    assert (rates.downlink_share, rates.downlink_format.duty) == pytest.approx((3 / 10 * 4 / 6, 5 / 10))
    assert rates.uplink_format.grant_bits == 3000 and rates.uplink_format.block_bits == 1000


def test_a_full_duplex_device_has_no_cycles_that_short_messages_wait_for() -> None:
    assert best(lte_m(duplex="full")).downlink_format.grant_bits == 1000
    assert best(lte_m(bundling=True)).downlink_format.grant_bits == 8000


# -- coverage ----------------------------------------------------------------------------------------------------------


def test_in_bad_coverage_blocks_are_repeated_in_fewer_resource_blocks() -> None:
    rows = [at(lte_m(), ratio_db, 20.0).uplink_format for ratio_db in (10.0, -6.0, -21.0, -30.0)]
    assert [row.row.split(", ", 2)[2] for row in rows] == [
        "4 PRB, sent once, CE mode A",
        "4 PRB, 8 repetitions, CE mode A",
        "1 PRB, 128 repetitions, CE mode B",
        "1 PRB, 1536 repetitions, CE mode B",
    ]
    assert all(one.repetitions < other.repetitions for one, other in pairwise(rows))


def test_a_narrow_uplink_has_its_power_in_few_resource_blocks() -> None:
    """The same block with one resource block or all six: 10 lg 6 = 7.8 dB, all else being the same."""
    rows = lte_m(coverage_mode="a").tables.uplink.rows
    lowest = rows[1]
    assert lowest.format.row == "I_TBS 0, 16 bits, 1 PRB, 32 repetitions, CE mode A"
    wide = lte_m(coverage_mode="a", category="m2").tables.uplink.rows[1]
    assert wide.format.row == lowest.format.row
    assert lowest.snr_db - wide.snr_db == pytest.approx(10 * np.log10(24 / 6))


def test_a_lowest_row_by_hand() -> None:
    """16 bits and 24 of checksum on 144 elements, 32 times: 0.00868 bits each, 8.3 dB a decade below CQI 1."""
    needed_db = -6.7 - 8.3 * np.log10(0.1523 / (40 / 144 / 32))
    assert lte_m(coverage_mode="a").least_snr_db.uplink == pytest.approx(needed_db - 10 * np.log10(6) + 2.5 - 3.0)


@pytest.mark.parametrize(("mode", "most", "most_i_tbs"), [("a", 32, 14), ("b", 2048, 10)])
def test_a_mode_has_its_repetitions_and_blocks(mode: str, most: int, most_i_tbs: int) -> None:
    for table in lte_m(coverage_mode=mode).tables:
        assert max(row.format.repetitions for row in table.rows) == most
        assert all(row.format.row.endswith(f"CE mode {mode.upper()}") for row in table.rows[1:])
    used = {row.format.row.split(",")[0] for row in lte_m(coverage_mode=mode).tables.uplink.rows[1:]}
    assert max(int(text.removeprefix("I_TBS ")) for text in used) == most_i_tbs


def test_mode_b_reaches_farther() -> None:
    auto, mode_a, mode_b = (lte_m(coverage_mode=mode).least_snr_db for mode in ("auto", "a", "b"))
    assert auto == mode_b and mode_b.uplink < mode_a.uplink - 10 and mode_b.downlink < mode_a.downlink - 10


@pytest.mark.parametrize(("uplink_db", "downlink_db", "mode"), [(10, 10, "A"), (-20, 10, "B"), (10, -14, "B")])
def test_a_device_has_one_mode_for_both_directions(uplink_db: float, downlink_db: float, mode: str) -> None:
    radio = lte_m(snr={"name": "given", "uplink_db": float(uplink_db), "downlink_db": float(downlink_db)})
    rates, budgets = radio.rates(site()), radio.budgets(site())
    assert rates.uplink_format.row.endswith(f"CE mode {mode}")
    assert rates.downlink_format.row.endswith(f"CE mode {mode}")
    assert (budgets.uplink.row, budgets.downlink.row) == (rates.uplink_format.row, rates.downlink_format.row)


@pytest.mark.parametrize("keys", [{}, {"duplex": "full"}, {"category": "m2"}, {"large_uplink_blocks": True}])
def test_a_device_leaves_mode_a_where_mode_b_is_better(keys: dict[str, Any]) -> None:
    """From the limit on mode B is nowhere better; just below it is, and mode A would have a sixth more at most."""
    limits_db = []
    for mode_a, mode_b in zip(*(lte_m(coverage_mode=mode, **keys).tables for mode in ("a", "b")), strict=True):
        limit_db = mode_a_from_db(mode_a, mode_b)
        limits_db.append(limit_db)
        assert mode_b.at(limit_db - 1e-9).bps > mode_a.at(limit_db - 1e-9).bps
        for row in (*mode_a.rows[1:], *mode_b.rows[1:]):
            bps_a, bps_b = mode_a.at(row.snr_db).bps, mode_b.at(row.snr_db).bps
            assert bps_a >= bps_b if row.snr_db >= limit_db else bps_b >= bps_a * (1 - 1 / 6)
    assert at(lte_m(**keys), *limits_db).uplink_format.row.endswith("CE mode A")


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_the_bandwidth_is_that_of_a_narrowband() -> None:
    assert lte_m().bandwidths_hz == (1.08e6, 1.08e6)
    assert lte_m(category="m2").bandwidths_hz == (4.32e6, 4.32e6)


def test_devices_are_half_duplex_or_not() -> None:
    assert lte_m().device_duplex == "half" and lte_m(duplex="full").device_duplex == "full"
    assert not lte_m().divides_time


def test_the_way_to_a_grant() -> None:
    """Half of 10 ms, 1 for the request, 3 until the grant; 4 more to the data, which a half-duplex cycle has itself."""
    assert lte_m().access_delays_s == pytest.approx((9e-3, 0.0))
    assert lte_m(duplex="full").access_delays_s == pytest.approx((13e-3, 2e-3))
    assert lte_m(scheduling_request_ms=40).grant_delay_s == pytest.approx(24e-3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"category": "m2", "release": 13}, "category=m2 came with Release 14; write release: 14, or leave it out"),
        ({"bundling": True, "release": 13}, "bundling=true came with Release 14"),
        ({"large_uplink_blocks": True, "release": 13}, "large_uplink_blocks=true came with Release 14"),
        ({"harq_processes": 10, "release": 13, "duplex": "full"}, "harq_processes=10 came with Release 14"),
        ({"harq_processes": 10}, "harq_processes=10 changes nothing .* acknowledges each block; write bundling: true"),
        ({"bundling": True, "duplex": "full"}, "bundling is for half-duplex devices, and duplex is full; leave it out"),
        ({"large_uplink_blocks": True, "category": "m2"}, "is for category m1, and M2 has blocks of 6968 bits anyway"),
        ({"category": "m3"}, "'m1' or 'm2'"),
        ({"coverage_mode": "c"}, "'auto', 'a' or 'b'"),
        ({"implementation_margin_db": -1.0}, "greater than or equal to 0"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        lte_m(**keys)
