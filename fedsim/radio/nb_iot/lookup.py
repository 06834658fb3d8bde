"""The best rows of many devices, each in the table for its own coverage class and number of repeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.radio.rate_table import RateTable
from fedsim.radio.settings import TransportFormat

__all__ = ["Found", "looked_up"]


class Found(NamedTuple):
    """One direction of many devices."""

    bps: NDArray[np.float64]
    share: NDArray[np.float64]
    row: NDArray[np.intp]
    formats: tuple[TransportFormat, ...]


def looked_up(
    table_for: Callable[[int, int], RateTable],
    classes: NDArray[np.int8],
    repeats: NDArray[np.intp],
    snr_db: NDArray[np.float64],
) -> Found:
    """The best rows, in the table for each device's class and number of repeats."""
    found = Found(np.zeros(len(snr_db)), np.ones(len(snr_db)), np.zeros(len(snr_db), np.intp), ())
    formats: tuple[TransportFormat, ...] = ()
    for coverage_class, number in sorted(set(zip(classes.tolist(), repeats.tolist(), strict=True))):
        table = table_for(coverage_class, number)
        own = np.flatnonzero((classes == coverage_class) & (repeats == number))
        row = table.row_of(snr_db[own])
        found.bps[own], found.share[own], found.row[own] = table.bps[row], table.share[row], row + len(formats)
        formats += table.formats
    return found._replace(formats=formats)
