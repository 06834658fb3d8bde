"""Radios of the technologies with tables, whose ratios leave nothing to be desired unless others are given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.radio.lte.radio import Lte
from fedsim.radio.lte_m.radio import LteM
from fedsim.radio.nr.radio import Nr
from fedsim.radio.nr.redcap import RedCap
from fedsim.radio.scheduled import ScheduledRadio
from fedsim.radio.settings import Rates, RatesOfMany, UpDown

GOOD = {"name": "given", "uplink_db": 60.0, "downlink_db": 60.0}
DDDSU = {"slots": "DDDSU", "special_downlink_symbols": 10}


def lte_m(**keys: Any) -> LteM:
    return LteM(**{"snr": GOOD, "block_errors": "none", **keys})


def lte(**keys: Any) -> Lte:
    return Lte(**{"snr": GOOD, "block_errors": "none", "bandwidth_mhz": 20.0, **keys})


def nr(**keys: Any) -> Nr:
    return Nr(**{"snr": GOOD, "block_errors": "none", "bandwidth_mhz": 100.0, **keys})


def redcap(**keys: Any) -> RedCap:
    return RedCap(**{"snr": GOOD, "block_errors": "none", **keys})


def at(radio: ScheduledRadio, uplink_db: float, downlink_db: float | None = None) -> Rates:
    """The rates at ratios, the same both ways unless two are given."""
    down_db = uplink_db if downlink_db is None else downlink_db
    [rates] = radio.rates_at_all(UpDown(np.array([uplink_db]), np.array([down_db])))
    return rates


def best(radio: ScheduledRadio) -> Rates:
    return at(radio, 60.0)


def along(radio: ScheduledRadio, uplink_db: NDArray[np.float64], downlink_db: NDArray[np.float64]) -> RatesOfMany:
    return radio.rates_at_all(UpDown(uplink_db, downlink_db))
