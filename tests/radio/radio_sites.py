"""Sensors to ask radios about, and radios that know their distance."""

from __future__ import annotations

from typing import Any

from fedsim.kernel.streams import Streams
from fedsim.radio.settings import RadioPath
from fedsim.radio.shannon import Shannon

GIVEN = {"name": "given", "uplink_db": 10.0, "downlink_db": 20.0}
BUDGET = {
    "name": "link_budget",
    "carrier_hz": 0.9e9,
    "device_power_dbm": 23.0,
    "station_power_dbm": 43.0,
    "device_noise_figure_db": 5.0,
    "station_noise_figure_db": 3.0,
    "path_loss": {"name": "log_distance", "exponent": 3.0},
}


def site(
    distance_m: float | None = 100.0, *, index: int = 0, station: int = 0, seed: int = 1, sensor: str = "cam-1"
) -> RadioPath:
    return RadioPath(sensor, index, station, station, distance_m, Streams(seed))


def shannon(snr: dict[str, Any] | None = None, **keys: Any) -> Shannon:
    """A radio with LTE's efficiency on 1 MHz, and a link budget unless another *snr* is named."""
    return Shannon(**{"profile": "lte_36942", "bandwidth_hz": 1e6, "snr": snr or BUDGET, **keys})
