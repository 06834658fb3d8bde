"""Rates and delays that others have published of LTE, LTE-M, 5G and RedCap."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from technologies import DDDSU, at, best, lte, lte_m, nr, redcap

from fedsim.radio.budget import noise_dbm
from fedsim.radio.settings import Rates

PUBLISHED = list(csv.DictReader((Path(__file__).parent / "published_technologies.csv").read_text("utf-8").splitlines()))
UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "ms": 1e-3}
NARROWBAND_NOISE_DBM = noise_dbm(1.08e6)


def in_deepest_coverage() -> Rates:
    """At 164 dB with TR 45.820's powers and noise figures: 46 dBm over 50 resource blocks, of which 6; 23 dBm."""
    downlink_db = 36.8 - 164.0 - NARROWBAND_NOISE_DBM - 5.0
    uplink_db = 23.0 - 164.0 - NARROWBAND_NOISE_DBM - 3.0
    return at(lte_m(block_errors="mean"), uplink_db, downlink_db)


WORKED_OUT: dict[str, Callable[[], float]] = {
    "V8": lambda: best(lte_m()).downlink_bps,
    "V9": lambda: best(lte_m()).uplink_bps,
    "V10": lambda: best(lte_m(harq_processes=10, bundling=True)).downlink_bps,
    "V11": lambda: best(lte_m(category="m2", duplex="full")).uplink_bps,
    "T1": lambda: best(lte_m(duplex="full")).uplink_bps,
    "T2": lambda: best(lte_m(duplex="full", release=13)).downlink_bps,
    "T3": lambda: best(lte_m(category="m2", duplex="full", harq_processes=10)).downlink_bps,
    "T4": lambda: in_deepest_coverage().downlink_bps,
    "T5": lambda: in_deepest_coverage().uplink_bps,
    "T6": lambda: best(lte()).downlink_bps,
    "T7": lambda: best(lte()).uplink_bps,
    "T8": lambda: best(lte(category="cat5")).downlink_bps,
    "T9": lambda: best(lte(category="cat5")).uplink_bps,
    "T10": lambda: best(lte(category="cat1")).downlink_bps,
    "T11": lambda: best(lte(category="cat1")).uplink_bps,
    "T12": lambda: lte(scheduling_request_ms=5).access_delays_s.uplink + 1e-3,
    "T13": lambda: lte(scheduling_request_ms=1).access_delays_s.uplink + 1e-3,
    "V12": lambda: best(nr(downlink_layers=4)).downlink_bps,
    "T14": lambda: best(nr(tdd=DDDSU)).downlink_bps,
    "T15": lambda: best(nr(tdd=DDDSU)).uplink_bps,
    "T16": lambda: best(nr(bandwidth_mhz=20.0, downlink_layers=4)).downlink_bps,
    "T17": lambda: (
        best(nr(bandwidth_mhz=400.0, subcarrier_khz=120, frequency_range="fr2", downlink_mcs_table=1)).downlink_bps
    ),
    "V26": lambda: best(redcap()).downlink_bps,
    "T18": lambda: best(redcap(antennas=2, downlink_mcs_table=2)).downlink_bps,
    "T19": lambda: best(redcap(release=18)).downlink_bps,
}


@pytest.mark.parametrize("row", PUBLISHED, ids=[f"{row['id']} {row['what']} ({row['source']})" for row in PUBLISHED])
def test_a_published_number_comes_out(row: dict[str, str]) -> None:
    published = float(row["published"]) * UNITS[row["unit"]]
    assert WORKED_OUT[row["id"]]() == pytest.approx(published, rel=float(row["tolerance_percent"]) / 100), row["source"]


def test_every_row_is_worked_out() -> None:
    assert {row["id"] for row in PUBLISHED} == set(WORKED_OUT)
