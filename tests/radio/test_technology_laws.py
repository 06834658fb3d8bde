"""What holds for the radios of all these technologies: a lower ratio is never faster, shares are parts, and so on."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from radio_sites import BUDGET, site
from technologies import DDDSU, along, at, best, lte, lte_m, nr, redcap
from tiers import drawn

from fedsim.radio.lte.blocks import block_bits
from fedsim.radio.rate_table import RateTable, Row
from fedsim.radio.scheduled import ScheduledRadio
from fedsim.radio.settings import TransportFormat

LTE_M: list[tuple[str, dict[str, Any]]] = [
    ("m1", {}),
    ("m1 full", {"duplex": "full", "harq_processes": 10}),
    ("m1 bundles", {"harq_processes": 10, "bundling": True, "large_uplink_blocks": True}),
    ("m1 a", {"coverage_mode": "a", "release": 13}),
    ("m1 b", {"coverage_mode": "b"}),
    ("m2", {"category": "m2"}),
    ("m2 full", {"category": "m2", "duplex": "full", "block_errors": "drawn"}),
]
LTE: list[tuple[str, dict[str, Any]]] = [
    ("cat1", {"category": "cat1", "control_symbols": 3}),
    ("cat3", {"category": "cat3", "block_errors": "mean"}),
    ("cat4 narrow", {"bandwidth_mhz": 1.4}),
    ("cat5 tdd", {"category": "cat5", "tdd": {"slots": "DSUUD", "special_downlink_symbols": 9}}),
]
NR: list[tuple[str, dict[str, Any]]] = [
    ("n78", {"tdd": DDDSU, "downlink_layers": 4, "uplink_layers": 2}),
    ("coverage", {"uplink_mcs_table": 3, "downlink_mcs_table": 3, "scaling": 0.75}),
    ("fr2", {"frequency_range": "fr2", "subcarrier_khz": 120, "bandwidth_mhz": 400.0, "block_errors": "mean"}),
]
REDCAP: list[tuple[str, dict[str, Any]]] = [
    ("one antenna", {}),
    ("two", {"antennas": 2, "downlink_mcs_table": 2, "subcarrier_khz": 30, "tdd": DDDSU}),
    ("reduced", {"release": 18, "duplex": "half", "block_errors": "mean"}),
]
RADIOS: dict[str, ScheduledRadio] = {
    **{f"lte_m {name}": lte_m(**keys) for name, keys in LTE_M},
    **{f"lte {name}": lte(**keys) for name, keys in LTE},
    **{f"nr {name}": nr(**keys) for name, keys in NR},
    **{f"redcap {name}": redcap(**keys) for name, keys in REDCAP},
}
each_radio = pytest.mark.parametrize("radio", RADIOS.values(), ids=RADIOS)
RATIOS_DB = np.arange(-50.0, 50.0, 0.05)
RATIOS = st.floats(-60.0, 60.0)


def densest_bps(radio: ScheduledRadio, way: int) -> float:
    """What a whole carrier carries with the densest scheme, before block errors; of LTE by its table of blocks."""
    keys = radio.model_dump()
    if radio.name == "lte_m":
        most = 21 if keys["large_uplink_blocks"] and way == 0 else 14
        size = 24 if keys["category"] == "m2" else 6
        return max(block_bits(i_tbs, n) / n for i_tbs in range(most + 1) for n in range(1, size + 1)) * size * 1e3
    if radio.name == "lte":
        size = {1.4: 6, 20.0: 100}[keys["bandwidth_mhz"]]
        layers = 1 if way == 0 else {"cat1": 1, "cat5": 4}.get(keys["category"], 2)
        return max(block_bits(26, n) / n for n in range(1, size + 1)) * size * layers * 1e3
    bits, layers = (6 if keys[("uplink_mcs_table", "downlink_mcs_table")[way]] in (1, 3) else 8), 4
    return layers * bits * 948 / 1024 * radio.bandwidths_hz[way] / 15e3 * 14e3


def test_of_equal_rates_the_row_that_takes_the_least_is_the_best() -> None:
    def row(snr_db: float, bps: float, share: float, duty: float) -> Row:
        return Row(snr_db, bps, share, TransportFormat(duty=duty))

    best_rows = [row(0.0, 9.0, 1.0, 0.5), row(1.0, 9.0, 0.5, 0.5), row(3.0, 9.0, 0.5, 0.2), row(5.0, 10.0, 1.0, 1.0)]
    others = [row(0.0, 8.0, 0.1, 0.1), row(2.0, 9.0, 0.5 - 3e-13, 0.5), row(4.0, 9.0, 0.5, 0.2 - 3e-13)]
    others += [row(4.5, 9.0, 0.6, 0.1), row(6.0, 9.5, 0.1, 0.1)]
    assert RateTable(best_rows[::-1] + others).rows[1:] == tuple(best_rows)


@each_radio
def test_a_lower_ratio_is_never_faster(radio: ScheduledRadio) -> None:
    bad = np.full_like(RATIOS_DB, -12.0)
    for uplink_db, downlink_db in ((RATIOS_DB, RATIOS_DB), (RATIOS_DB, bad), (bad, RATIOS_DB)):
        rates = along(radio, uplink_db, downlink_db)
        assert (np.diff(rates.uplink_bps) >= 0).all()
        assert (np.diff(rates.downlink_bps) >= 0).all()


@each_radio
@drawn(40)
@given(one_db=RATIOS, other_db=RATIOS, loss_db=st.floats(0.0, 30.0))
def test_nor_are_two_lower_ones(radio: ScheduledRadio, one_db: float, other_db: float, loss_db: float) -> None:
    near, far = at(radio, one_db, other_db), at(radio, one_db - loss_db, other_db - loss_db)
    assert near.uplink_bps >= far.uplink_bps and near.downlink_bps >= far.downlink_bps


@each_radio
def test_shares_and_duties_are_parts_and_no_row_is_more_than_the_category_can(radio: ScheduledRadio) -> None:
    for way, table in enumerate(radio.tables):
        assert isinstance(table, RateTable) and len(table.rows) > 20
        carrier_bps = radio.kept * densest_bps(radio, way)
        for row in table.rows[1:]:
            assert 0 < row.share <= 1 and 0 < row.format.duty <= 1
            assert row.bps <= row.format.most_bps * (1 + 1e-12)
            assert row.bps / row.share <= carrier_bps * (1 + 1e-12)
            assert row.format.block_bits > 0 and row.format.row
            assert row.format.block_errors == radio.drawn_errors


@each_radio
def test_the_lowest_ratio_is_that_of_the_lowest_row(radio: ScheduledRadio) -> None:
    uplink_db, downlink_db = radio.least_snr_db
    lowest = at(radio, uplink_db, downlink_db)
    assert lowest.uplink_bps > 0 and lowest.downlink_bps > 0
    assert at(radio, uplink_db - 1e-9, downlink_db).uplink_bps == 0
    assert at(radio, uplink_db, downlink_db - 1e-9).downlink_bps == 0


@each_radio
def test_a_table_is_built_once(radio: ScheduledRadio) -> None:
    again = type(radio).model_validate(radio.model_dump())
    assert all(one is other for one, other in zip(radio.tables, again.tables, strict=True))


@each_radio
def test_block_errors_take_a_tenth_and_margins_move_ratios(radio: ScheduledRadio) -> None:
    keys = radio.model_dump()
    exact, mean = (type(radio).model_validate({**keys, "block_errors": how}) for how in ("none", "mean"))
    assert best(mean).uplink_bps == pytest.approx(0.9 * best(exact).uplink_bps)
    assert best(mean).downlink_bps == pytest.approx(0.9 * best(exact).downlink_bps)
    assert best(type(radio).model_validate({**keys, "block_errors": "drawn"})).uplink_format.block_errors == 0.1
    moved = type(radio).model_validate({**keys, "implementation_margin_db": 4.0, "uplink_receiver_gain_db": 1.0})
    assert moved.least_snr_db.uplink == pytest.approx(radio.least_snr_db.uplink + 1.5 + 2.0)
    assert moved.least_snr_db.downlink == pytest.approx(radio.least_snr_db.downlink + 1.5)


@each_radio
def test_a_budget_tells_the_row_that_the_rate_is_of(radio: ScheduledRadio) -> None:
    placed = type(radio).model_validate({**radio.model_dump(), "snr": BUDGET})
    for distance_m in (50.0, 900.0, 2_000.0):
        rates, budgets = placed.rates(site(distance_m)), placed.budgets(site(distance_m))
        assert (budgets.uplink.rate_bps, budgets.downlink.rate_bps) == (rates.uplink_bps, rates.downlink_bps)
        assert budgets.uplink.row == rates.uplink_format.row and budgets.downlink.row == rates.downlink_format.row


def test_a_table_takes_a_fifth_of_a_second_at_most() -> None:
    """Of processor time, however many rows it has; with keys that no other test has."""
    begin_s = time.process_time()
    assert nr(downlink_layers=8, uplink_layers=4, uplink_receiver_gain_db=0.125).tables
    assert lte_m(category="m2", uplink_receiver_gain_db=0.125).tables
    assert time.process_time() - begin_s < 2 * 0.2


def test_they_share_the_air_fairly() -> None:
    assert {radio.usual_discipline for radio in RADIOS.values()} == {"fair"}
