"""Which mode of coverage enhancement a device is in: one for both directions.

A base station moves a device to mode B where it expects little of mode A. Here each direction has a ratio from which on
mode B is nowhere better; a device is in mode B as soon as one of its directions is below that (about -10 dB over a
narrowband). So a rate never rises when a ratio falls. Just below, mode A would have up to a tenth more at some ratios
(a sixth with large blocks). Leaves out that a device keeps its mode for a while.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.radio.rate_table import RateTable
from fedsim.radio.settings import RatesOfMany, TransportFormat, UpDown
from fedsim.radio.snr_radio import RatiosOfMany

__all__ = ["Modes", "joined", "mode_a_from_db"]


@cache
def mode_a_from_db(mode_a: RateTable, mode_b: RateTable) -> float:
    """The ratio from which on mode A is taken."""
    edges_db = np.array(sorted(row.snr_db for table in (mode_a, mode_b) for row in table.rows[1:]))
    worse = np.flatnonzero(mode_b.bps[mode_b.row_of(edges_db)] > mode_a.bps[mode_a.row_of(edges_db)])
    return float(edges_db[worse[-1] + 1]) if len(worse) else -math.inf


@cache
def joined(mode_a: RateTable, mode_b: RateTable) -> RateTable:
    """What there is where the other direction is good."""
    from_db = mode_a_from_db(mode_a, mode_b)
    below = [row for row in mode_b.rows[1:] if row.snr_db < from_db]
    return RateTable(below + [row for row in mode_a.rows[1:] if row.snr_db >= from_db])


class Modes(NamedTuple):
    """The tables of both modes."""

    mode_a: UpDown[RateTable]
    mode_b: UpDown[RateTable]

    def in_mode_b(self, snr_db: RatiosOfMany) -> NDArray[np.bool_]:
        """Which devices are."""
        limits_db = UpDown(*map(mode_a_from_db, self.mode_a, self.mode_b))
        return (snr_db.uplink < limits_db.uplink) | (snr_db.downlink < limits_db.downlink)

    def rates_at(self, snr_db: RatiosOfMany) -> RatesOfMany:
        """The rates of devices."""
        in_b = self.in_mode_b(snr_db)
        up = _looked_up(self.mode_a.uplink, self.mode_b.uplink, in_b, snr_db.uplink)
        down = _looked_up(self.mode_a.downlink, self.mode_b.downlink, in_b, snr_db.downlink)
        formats: UpDown[Sequence[TransportFormat]] = UpDown(
            self.mode_a.uplink.formats + self.mode_b.uplink.formats,
            self.mode_a.downlink.formats + self.mode_b.downlink.formats,
        )
        return RatesOfMany(
            up.bps, down.bps, up.share, down.share, formats=formats, uplink_row=up.row, downlink_row=down.row
        )


class _Found(NamedTuple):
    """One direction of many devices."""

    bps: NDArray[np.float64]
    share: NDArray[np.float64]
    row: NDArray[np.intp]


def _looked_up(mode_a: RateTable, mode_b: RateTable, in_b: NDArray[np.bool_], snr_db: NDArray[np.float64]) -> _Found:
    row_a, row_b = mode_a.row_of(snr_db), mode_b.row_of(snr_db)
    return _Found(
        np.where(in_b, mode_b.bps[row_b], mode_a.bps[row_a]),
        np.where(in_b, mode_b.share[row_b], mode_a.share[row_a]),
        np.where(in_b, row_b + len(mode_a.rows), row_a),
    )
