"""5G New Radio: the standard's tables, peak rates by hand, layers, turns, weak uplinks, the way to a grant."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from technologies import DDDSU, at, best, nr

from fedsim.radio.nr.rows import NrDirection, nr_table
from fedsim.radio.nr.tables import resource_blocks, schemes, shannon_db
from fedsim.radio.rate_table import RateTable
from fedsim.radio.standard_tables import precoded_sizes

GUARD_KHZ = {
    (1, 15): [242.5, 312.5, 382.5, 452.5, 522.5, 592.5, 552.5, 692.5],
    (1, 30): [505, 665, 645, 805, 785, 945, 905, 1045, 825, 965, 925, 885, 845],
    (1, 60): [1010, 990, 1330, 1310, 1290, 1610, 1570, 1530, 1490, 1450, 1410, 1370],
    (2, 60): [1210, 2450, 4930],
    (2, 120): [1900, 2420, 4900, 9860],
}
"""The guard bands of TS 38.101-1 and -2, tables 5.3.3-1, in the order of bandwidths."""


# -- the standard's tables ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carrier", GUARD_KHZ)
def test_resource_blocks_leave_the_guard_bands_of_the_standard(carrier: tuple[int, int]) -> None:
    spacing_khz = carrier[1]
    guards = [(mhz * 1e3 - n * 12 * spacing_khz - spacing_khz) / 2 for mhz, n in resource_blocks()[carrier].items()]
    assert guards == GUARD_KHZ[carrier]
    assert set(resource_blocks()) == set(GUARD_KHZ)


@pytest.mark.parametrize(("number", "count", "lowest", "highest"), [
    (1, 29, 0.2344, 5.5547), (2, 28, 0.2344, 7.4063), (3, 29, 0.0586, 4.5234)
])  # fmt: skip
def test_a_table_of_schemes_has_the_ends_of_the_standard(
    number: int, count: int, lowest: float, highest: float
) -> None:
    own = schemes(number)
    assert [scheme.mcs for scheme in own] == list(range(count))
    assert (own[0].efficiency, own[-1].efficiency) == pytest.approx((lowest, highest), abs=1e-4)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_scheme_is_better_than_shannon_or_far_from_it(number: int) -> None:
    for scheme in schemes(number):
        gap_db = scheme.needed_db - shannon_db(scheme.efficiency)
        assert 0.4 < gap_db < 3.0, scheme


def test_a_denser_scheme_needs_more() -> None:
    for number in (1, 2, 3):
        own = sorted(schemes(number), key=lambda scheme: scheme.efficiency)
        same = [(one, other) for one in own for other in own if one.efficiency < other.efficiency]
        assert all(one.needed_db < other.needed_db for one, other in same if other.efficiency > 1.02 * one.efficiency)


def test_table_3_has_the_ratios_of_table_1_and_six_lower_ones() -> None:
    """The lowest by hand: 30/1024 of QPSK are 0.0586 bits, at -13.83 dB by Shannon, and a gap of 1.07 dB."""
    of_table_1 = {scheme.efficiency: scheme.needed_db for scheme in schemes(1)}
    low, known = schemes(3)[:6], schemes(3)[6:]
    assert all(of_table_1[scheme.efficiency] == scheme.needed_db for scheme in known)
    assert not set(of_table_1) & {scheme.efficiency for scheme in low}
    gap_db = -6.47 - 10 * math.log10(2 ** (240 / 1024) - 1)
    assert low[0].needed_db == pytest.approx(10 * math.log10(2 ** (60 / 1024) - 1) + gap_db)
    assert low[0].needed_db == pytest.approx(-12.76, abs=0.02)


# -- rates -------------------------------------------------------------------------------------------------------------


def peak_bps(layers: int, bits: int, blocks: int, spacing_khz: int, overhead: float) -> float:
    """TS 38.306 clause 4.1.2."""
    symbol_s = 1e-3 / (14 * spacing_khz / 15)
    return layers * bits * (948 / 1024) * blocks * 12 / symbol_s * (1 - overhead)


@pytest.mark.parametrize(
    ("keys", "down", "up"),
    [
        ({}, (2, 8, 273, 30, 0.14), (1, 6, 273, 30, 0.08)),
        ({"downlink_layers": 8, "uplink_layers": 4}, (8, 8, 273, 30, 0.14), (4, 6, 273, 30, 0.08)),
        ({"downlink_mcs_table": 1, "uplink_mcs_table": 2}, (2, 6, 273, 30, 0.14), (1, 8, 273, 30, 0.08)),
        ({"bandwidth_mhz": 20, "subcarrier_khz": 15}, (2, 8, 106, 15, 0.14), (1, 6, 106, 15, 0.08)),
        ({"bandwidth_mhz": 50.0, "subcarrier_khz": 60}, (2, 8, 65, 60, 0.14), (1, 6, 65, 60, 0.08)),
        (
            {"bandwidth_mhz": 400.0, "subcarrier_khz": 120, "frequency_range": "fr2"},
            (2, 8, 264, 120, 0.18),
            (1, 6, 264, 120, 0.10),
        ),
        (
            {"bandwidth_mhz": 200.0, "subcarrier_khz": 60, "frequency_range": "fr2"},
            (2, 8, 264, 60, 0.18),
            (1, 6, 264, 60, 0.10),
        ),
    ],
)
def test_the_best_rates_are_the_peaks_of_the_standard(
    keys: dict[str, Any], down: tuple[int, int, int, int, float], up: tuple[int, int, int, int, float]
) -> None:
    rates = best(nr(**keys))
    assert (rates.downlink_bps, rates.uplink_bps) == pytest.approx((peak_bps(*down), peak_bps(*up)))
    assert (rates.downlink_share, rates.uplink_share) == (1.0, 1.0)


@pytest.mark.parametrize("scaling", [1.0, 0.8, 0.75, 0.4])
def test_a_device_scales_its_peak(scaling: float) -> None:
    assert best(nr(scaling=scaling)).downlink_bps == pytest.approx(scaling * best(nr()).downlink_bps)
    assert best(nr(scaling=scaling)).uplink_bps == pytest.approx(scaling * best(nr()).uplink_bps)


def test_directions_take_turns() -> None:
    always, in_turns = best(nr()), best(nr(tdd=DDDSU))
    assert in_turns.uplink_bps == pytest.approx(0.2 * always.uplink_bps)
    assert in_turns.downlink_bps == pytest.approx(26 / 35 * always.downlink_bps)
    assert (in_turns.uplink_format.duty, in_turns.downlink_format.duty) == pytest.approx((0.2, 26 / 35))
    assert in_turns.uplink_format.block_bits == always.uplink_format.block_bits
    assert nr(tdd=DDDSU).divides_time and not nr().divides_time


def test_a_block_is_what_a_slot_carries() -> None:
    rates = best(nr())
    assert rates.downlink_format.block_bits == pytest.approx(rates.downlink_bps * 0.5e-3)
    assert rates.downlink_format.grant_bits == pytest.approx(rates.downlink_format.block_bits / 273)
    assert rates.downlink_format.row == "MCS 27 of table 2 (256QAM), 273 PRB, 2 layers"
    assert rates.uplink_format.row == "MCS 28 of table 1 (64QAM), 273 PRB, 1 layer"


def test_layers_divide_the_power() -> None:
    """Of v layers each has 10 lg v dB less: 24.63 dB for the densest scheme, 2.5 of margin, 3 or 6 more."""
    for layers in (1, 2, 4):
        table = nr(downlink_layers=layers).tables.downlink
        assert table.rows[-1].snr_db == pytest.approx(24.63 + 2.5 + 10 * math.log10(layers))
    up = nr(uplink_layers=2, uplink_receiver_gain_db=0.0, implementation_margin_db=0.0).tables.uplink
    assert up.rows[-1].snr_db == pytest.approx(18.97 + 10 * math.log10(2))


@pytest.mark.parametrize(("ratio_db", "layers"), [(-3.0, 1), (0.0, 2), (40.0, 4)])
def test_more_layers_are_used_where_the_ratio_is_good(ratio_db: float, layers: int) -> None:
    row = at(nr(downlink_layers=4), ratio_db).downlink_format.row
    assert row.endswith("1 layer" if layers == 1 else f"{layers} layers")


def test_a_weak_uplink_uses_few_resource_blocks() -> None:
    rates = [at(nr(), ratio_db, 20.0) for ratio_db in (-31.0, -20.0, -10.0, 20.0)]
    assert rates[0].uplink_format.row == "MCS 0 of table 1 (QPSK), 1 PRB, 1 layer"
    assert rates[0].uplink_share == pytest.approx(1 / 273)
    assert [one.uplink_share for one in rates] == sorted(one.uplink_share for one in rates)
    assert nr().least_snr_db.uplink == pytest.approx(-6.47 + 2.5 - 3.0 - 10 * math.log10(273))
    assert nr().least_snr_db.downlink == pytest.approx(-6.31 + 2.5)


@pytest.mark.parametrize(("mhz", "largest"), [(20.0, [20, 24]), (50.0, [64, 65])])
def test_an_uplink_uses_no_more_than_its_carrier_has(mhz: float, largest: list[int]) -> None:
    """24 and 65 resource blocks at 60 kHz, where one more or one less is a product of 2, 3 and 5."""
    assert list(nr(bandwidth_mhz=mhz, subcarrier_khz=60)._direction(0).sizes())[-2:] == largest


class AllSizes(NrDirection):
    """Every number of resource blocks."""

    def sizes(self) -> Any:
        return range(1, self.most_blocks + 1)


@pytest.mark.parametrize("table", [1, 2])
def test_sizes_without_large_primes_cost_a_seventh_at_most_and_under_two_percent_on_average(table: int) -> None:
    thinned = replace(nr()._direction(0), mcs_table=table)
    every = AllSizes(**{name: getattr(thinned, name) for name in NrDirection.__slots__})
    ratios_db = np.arange(-31.0, 15.0, 0.02)
    some, all_ = (one.bps[one.row_of(ratios_db)] for one in (nr_table(thinned), nr_table(every)))
    lost = 1 - some / all_
    assert lost.min() >= 0 and lost.max() < 1 / 7
    assert lost.mean() < 0.02
    assert precoded_sizes(273)[-1] == 270 and isinstance(nr_table(every), RateTable)


def test_an_efficient_margin_by_hand() -> None:
    """At 15 dB with 2.5 dB of margin MCS 14 of table 2 (12.71 dB needed) is out of reach, and MCS 13 is not."""
    row = at(nr(downlink_layers=1), 60.0, 15.0).downlink_format.row
    assert row.startswith("MCS 13 of table 2")
    assert at(nr(downlink_layers=1, implementation_margin_db=0.0), 60.0, 15.0).downlink_format.row.startswith("MCS 16 ")


# -- the way to a grant ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "uplink_s", "downlink_s"),
    [
        ({}, (10 + 1 + 3 + 3) * 0.5e-3, 0.5e-3),
        ({"scheduling_request_slots": 1, "grant_slots": 0, "k2_slots": 0}, 1.5 * 0.5e-3, 0.5e-3),
        ({"scheduling_request_slots": 80, "k2_slots": 6}, (40 + 1 + 3 + 6) * 0.5e-3, 0.5e-3),
        ({"subcarrier_khz": 15, "bandwidth_mhz": 20.0}, 17e-3, 1e-3),
        (
            {"subcarrier_khz": 120, "bandwidth_mhz": 100.0, "frequency_range": "fr2", "grant_slots": 7},
            (10 + 1 + 7 + 3) * 0.125e-3,
            0.125e-3,
        ),
    ],
)
def test_what_a_message_waits_for(keys: dict[str, Any], uplink_s: float, downlink_s: float) -> None:
    radio = nr(**keys)
    assert radio.access_delays_s == pytest.approx((uplink_s, downlink_s))
    assert radio.grant_delay_s == radio.access_delays_s.uplink


def test_bandwidth_and_duplex() -> None:
    assert nr().bandwidths_hz == (273 * 360e3, 273 * 360e3)
    assert nr().device_duplex == "full"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"bandwidth_mhz": 55.0},
            r"bandwidth_mhz=55 is no bandwidth of frequency range 1 with subcarriers of 30 kHz; .* are 50 and 60 \[",
        ),
        ({"bandwidth_mhz": 100.0, "subcarrier_khz": 15}, "with subcarriers of 15 kHz; the nearest are 40 and 50"),
        (
            {"bandwidth_mhz": 100.0, "subcarrier_khz": 120},
            "subcarrier_khz=120 is not for frequency range 1; it has 15, 30, 60",
        ),
        ({"frequency_range": "fr2"}, "subcarrier_khz=30 is not for frequency range 2; it has 60, 120"),
        ({"scaling": 0.5}, "scaling=0.5 is none of the standard's; it has 1, 0.8, 0.75 and 0.4"),
        (
            {"tdd": DDDSU, "scheduling_request_slots": 4},
            "scheduling_request_slots=4 are fewer than the pattern of tdd has .5., .* give at least 5",
        ),
        ({"scheduling_request_slots": 3}, "scheduling_request_slots"),
        ({"uplink_layers": 5}, "less than or equal to 4"),
        ({"downlink_layers": 9}, "less than or equal to 8"),
        ({"uplink_mcs_table": 4}, "1, 2 or 3"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        nr(**keys)
