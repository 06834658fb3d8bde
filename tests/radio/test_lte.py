"""LTE: the standard's blocks, what they need, layers, categories, narrow uplinks, control, turns."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from pydantic import ValidationError
from technologies import at, best, lte

from fedsim.radio.fixed import profiles
from fedsim.radio.lte.blocks import Block, block_bits, down_elements, needed_db, needed_for, up_elements, with_checksums
from fedsim.radio.standard_tables import precoded_sizes, table

# -- the standard's tables ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("i_tbs", "resource_blocks", "bits"),
    [
        (0, 1, 16),
        (6, 1, 328),
        (9, 6, 936),
        (13, 4, 1000),
        (14, 24, 6968),
        (21, 6, 2984),
        (26, 50, 36696),
        (19, 100, 43816),
    ],
)
def test_block_sizes_as_others_print_them(i_tbs: int, resource_blocks: int, bits: int) -> None:
    assert block_bits(i_tbs, resource_blocks) == bits


def test_more_resource_blocks_or_a_higher_index_never_carry_less() -> None:
    """But for 328 bits in one resource block at I_TBS 6, which the standard has for speech."""
    falls = [
        (i_tbs, n)
        for i_tbs in range(27)
        for n in range(1, 111)
        if (n > 1 and block_bits(i_tbs, n) < block_bits(i_tbs, n - 1))
        or (i_tbs > 0 and block_bits(i_tbs, n) < block_bits(i_tbs - 1, n))
    ]
    assert falls == [(6, 2), (7, 1)]


def test_all_blocks_are_whole_bytes() -> None:
    assert all(int(bits) % 8 == 0 for row in table("fedsim.radio.lte", "blocks.csv") for bits in list(row.values())[1:])


def test_an_efficiency_is_modulation_times_code_rate() -> None:
    for row in table("fedsim.radio.lte", "cqi.csv"):
        exact = int(row["modulation_bits"]) * int(row["rate_x1024"]) / 1024
        assert float(row["efficiency"]) == pytest.approx(exact, abs=6e-5)


def test_elements_for_data() -> None:
    """168 less the control region, and less reference signals beyond it: 8, 16 or 24 of them in all symbols."""
    assert [down_elements(1, symbols) for symbols in (1, 2, 3)] == [150, 138, 126]
    assert [down_elements(2, symbols) for symbols in (1, 2, 3, 4)] == [144, 132, 120, 108]
    assert [down_elements(4, symbols) for symbols in (1, 2, 3)] == [136, 128, 116]
    assert up_elements() == 144


def test_what_a_block_needs() -> None:
    """CQI 5 has 0.877 bits at 2.4 dB and CQI 6 1.1758 at 4.3; halfway of the logarithm is halfway of the decibels."""
    assert needed_db(0.877) == 2.4 and needed_db(1.1758) == 4.3
    assert needed_db(math.sqrt(0.877 * 1.1758)) == pytest.approx((2.4 + 4.3) / 2)
    assert needed_db(0.1523 / 8) == pytest.approx(-6.7 - 3 * 2.4985, abs=1e-3)
    assert needed_db(5.58) - 22.7 == pytest.approx((22.7 - 21.0) * math.log(5.58 / 5.5547) / math.log(5.5547 / 5.1152))


def test_a_block_with_too_high_a_code_rate_is_refused() -> None:
    """328 bits in one resource block need QPSK of 2.4 bits; twice sent they need 1.2, and that is too dense too."""
    block = Block(6, 328, 2, 144)
    assert needed_for(block) == math.inf == needed_for(Block(26, 75376, 6, 100 * 132))
    assert needed_for(block, 2) == needed_db(352 / 288) and with_checksums(328) == 352
    assert needed_for(Block(0, 162, 2, 100)) == needed_db(1.86)  # 0.93 are not above
    assert needed_for(Block(0, 268, 2, 144), 1) == math.inf and needed_for(Block(0, 240, 2, 144), 1) < 20


def test_a_long_block_has_a_checksum_for_each_code_block() -> None:
    """TS 36.212 clause 5.1.2: 6144 bits are one, 12264 are three of at most 6120 and their checksums."""
    assert (with_checksums(6120), with_checksums(12240)) == (6144, 12264 + 3 * 24)


def test_sizes_of_an_uplink_have_no_large_prime() -> None:
    sizes = precoded_sizes(100)
    assert sizes[-5:] == (80, 81, 90, 96, 100) and len(sizes) == 34
    assert not any(size % prime == 0 for size in sizes for prime in (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47))


# -- rates -------------------------------------------------------------------------------------------------------------


def test_the_best_rates_are_those_of_the_nominal_profile() -> None:
    nominal, rates = profiles()["lte_cat4"], best(lte())
    assert (rates.uplink_bps, rates.downlink_bps) == (nominal.uplink_bps, nominal.downlink_bps)
    assert rates.downlink_format.row == "I_TBS 26 (64QAM), 100 PRB, 2 layers, 150752 bits"
    assert rates.downlink_format.grant_bits == 1507.52


@pytest.mark.parametrize(
    ("keys", "down_bits", "up_bits"),
    [
        ({"bandwidth_mhz": 1.4}, 2 * 4392, 2984),
        ({"bandwidth_mhz": 3}, 2 * 11064, 7480),
        ({"bandwidth_mhz": 5}, 2 * 18336, 12576),
        ({"bandwidth_mhz": 10}, 2 * 36696, 25456),
        ({"bandwidth_mhz": 15}, 2 * 55056, 37888),
        ({"layers": 1}, 75376, 51024),
        ({"category": "cat1"}, 10296, 5160),
        ({"category": "cat1bis"}, 10296, 5160),
        ({"category": "cat2"}, 51024, 25456),
        ({"category": "cat3"}, 102048, 51024),
        ({"category": "cat5", "layers": 2}, 2 * 75376, 75376),
        ({"category": "cat5"}, 299552, 75376),
    ],
)
def test_the_best_blocks_of_bandwidths_and_categories(keys: dict[str, Any], down_bits: int, up_bits: int) -> None:
    rates = best(lte(**keys))
    assert (rates.downlink_bps, rates.uplink_bps) == pytest.approx((down_bits * 1e3, up_bits * 1e3))
    assert rates.downlink_format.block_bits == down_bits


def test_longer_control_regions_leave_less() -> None:
    """With two symbols I_TBS 26 has a code rate above 0.93, and 25 is the best: 63776 bits on each layer."""
    assert best(lte(control_symbols=2)).downlink_bps == pytest.approx(2 * 63776e3)
    needed = [lte(control_symbols=symbols).least_snr_db.downlink for symbols in (1, 2, 3)]
    assert needed == sorted(needed) and len(set(needed)) == 3
    narrow = lte(bandwidth_mhz=1.4, control_symbols=1).tables.downlink.rows[1]
    by_hand_db = needed_db((152 + 24) / (6 * down_elements(2, 2)))
    assert narrow.snr_db == pytest.approx(by_hand_db + 2.5)


def test_a_device_that_can_do_little_leaves_the_rest_of_the_carrier() -> None:
    """10296 bits take 14 of 100 resource blocks at their densest; at worse ratios they take more."""
    shares = [at(lte(category="cat1"), 60.0, ratio_db).downlink_share for ratio_db in (2.0, 10.0, 30.0)]
    assert shares == sorted(shares, reverse=True) and shares[-1] == pytest.approx(0.14)
    last = lte(category="cat1").tables.downlink.rows[-1]  # whose ratio is over the carrier: fewer blocks help nobody
    assert last.snr_db == pytest.approx(needed_for(Block(26, 10296, 6, 14 * down_elements(1, 1))) + 2.5)
    assert best(lte(category="cat4")).downlink_share == 1.0
    assert best(lte(category="cat3")).downlink_format.row == "I_TBS 26 (64QAM), 68 PRB, 2 layers, 102048 bits"


def test_layers_divide_the_power() -> None:
    one, two = lte(layers=1).tables.downlink, lte().tables.downlink
    row = next(row for row in two.rows if row.format.row.startswith("I_TBS 26 (64QAM), 100 PRB, 2 layers"))
    elements = 100 * down_elements(2, 1)
    assert row.snr_db == pytest.approx(needed_for(Block(26, 75376, 6, elements)) + 10 * math.log10(2) + 2.5)
    assert one.bps[-1] == two.bps[-1] / 2
    assert one.least_snr_db < two.least_snr_db  # a second antenna has reference signals of its own


def test_a_weak_uplink_uses_few_resource_blocks() -> None:
    rows = {ratio_db: at(lte(), ratio_db, 20.0) for ratio_db in (-24.0, -10.0, 20.0)}
    assert rows[-24.0].uplink_format.row == "I_TBS 0 (QPSK), 1 PRB, 16 bits" and rows[-24.0].uplink_share == 0.01
    assert 0.01 < rows[-10.0].uplink_share < rows[20.0].uplink_share
    by_hand_db = needed_db(40 / 144) - 20 - 3 + 2.5
    assert lte().least_snr_db.uplink == pytest.approx(by_hand_db)


def test_of_two_modulations_of_an_i_tbs_the_denser_is_taken() -> None:
    """TS 36.213 tables 7.1.7.1-1 and 8.6.1-1: from I_TBS 9 and 15 on down, from 10 and 19 on up."""
    for rates, (first_16qam, first_64qam) in zip(lte(category="cat5").tables, ((10, 19), (9, 15)), strict=True):
        found = re.findall(r"I_TBS (\d+) \((\w+)\)", " ".join(row.format.row for row in rates.rows))
        assert set(found) == {
            (str(i), "QPSK" if i < first_16qam else "16QAM" if i < first_64qam else "64QAM") for i in range(27)
        }


def test_only_some_categories_send_with_64qam() -> None:
    rows = {category: best(lte(category=category)).uplink_format.row for category in ("cat4", "cat5")}
    assert "16QAM" in rows["cat4"] and "64QAM" in rows["cat5"]


def test_directions_may_take_turns() -> None:
    turns = {"slots": "DSUUD", "special_downlink_symbols": 9}
    always, in_turns = best(lte()), best(lte(tdd=turns))
    assert in_turns.uplink_bps == pytest.approx(0.4 * always.uplink_bps)
    assert in_turns.downlink_bps == pytest.approx((2 + 9 / 14) / 5 * always.downlink_bps)
    assert in_turns.uplink_format.duty == pytest.approx(0.4) and in_turns.uplink_share == always.uplink_share
    assert lte(tdd=turns).divides_time and not lte().divides_time


def test_bandwidth_and_delays() -> None:
    assert lte(bandwidth_mhz=10.0).bandwidths_hz == (9e6, 9e6)
    assert lte().access_delays_s == pytest.approx((13e-3, 1e-3))
    assert lte().device_duplex == "full"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"bandwidth_mhz": 12.0},
            r"bandwidth_mhz=12 is none of LTE's \(1.4, 3, 5, 10, 15, 20\); the nearest are 10 and 15",
        ),
        ({"bandwidth_mhz": 100.0}, "the nearest are 15 and 20"),
        ({"layers": 4}, r"layers=4 are more than devices of cat4 receive \(2\); give fewer, or another category"),
        ({"category": "cat1", "layers": 2}, r"layers=2 are more than devices of cat1 receive \(1\)"),
        ({"category": "cat9"}, "'cat1'"),
        ({"control_symbols": 4}, "1, 2 or 3"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        lte(**keys)
