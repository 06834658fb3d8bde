"""A table of what a technology can send at which signal-to-noise ratio: for each ratio its best row.

Of all rows whose ratio is reached, a base station takes the one with the highest rate; of equal ones the one that needs
the least of the carrier, and then the shortest time on the air. So the rate never falls when the ratio rises. Rows that
are never taken are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsim.radio.settings import ANY_FORMAT, TransportFormat

__all__ = ["RateTable", "Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One way to send."""

    snr_db: float
    """The ratio from which on it is good for a tenth of block errors, over the bandwidth that the table is for."""
    bps: float
    """What a device gets with it that is alone on the air."""
    share: float
    """The part of a carrier that this takes."""
    format: TransportFormat


NOTHING = Row(-math.inf, 0.0, 1.0, ANY_FORMAT)
"""No coverage."""


def _merit(row: Row) -> tuple[float, float, float]:
    """What a base station prefers: a higher rate, then less of the carrier, then a shorter time on the air."""
    return (row.bps, -round(row.share, 12), -round(row.format.duty, 12))


class RateTable:
    """The best row for each ratio.

    >>> rows = [Row(0.0, 100.0, 1.0, ANY_FORMAT), Row(5.0, 90.0, 0.5, ANY_FORMAT), Row(9.0, 200.0, 1.0, ANY_FORMAT)]
    >>> table = RateTable(rows)
    >>> [table.at(snr_db).bps for snr_db in (-0.1, 0.0, 7.0, 9.0)]
    [0.0, 100.0, 100.0, 200.0]
    """

    __slots__ = ("_from_db", "bps", "formats", "rows", "share")

    def __init__(self, rows: Iterable[Row]) -> None:
        best = [NOTHING]
        for row in sorted(rows, key=lambda row: (row.snr_db, -row.bps, row.share)):
            if _merit(row) > _merit(best[-1]):
                best.append(row)
        self.rows = tuple(best)
        """From no coverage to the best; none has a lower rate than the one before."""
        self.bps = np.array([row.bps for row in best])
        self.share = np.array([row.share for row in best])
        self.formats = tuple(row.format for row in best)
        self._from_db = np.array([row.snr_db for row in best[1:]])

    @property
    def least_snr_db(self) -> float:
        """Below it there is no coverage; infinite where there never is any."""
        return self.rows[1].snr_db if len(self.rows) > 1 else math.inf

    def row_of(self, snr_db: NDArray[np.float64]) -> NDArray[np.intp]:
        """The number of the best row at each ratio; 0 is no coverage."""
        return np.searchsorted(self._from_db, snr_db, side="right")

    def at(self, snr_db: float) -> Row:
        """The best row at one ratio."""
        return self.rows[int(self.row_of(np.array([snr_db]))[0])]
