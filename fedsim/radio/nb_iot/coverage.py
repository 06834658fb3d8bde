"""Coverage classes of NB-IoT: normal, robust and extreme, by coupling loss.

A device is in class 1 beyond 144 dB and in class 2 beyond 154 dB (TR 45.820 clause 4.1; a network sets such thresholds
as powers at the device, TS 36.331 *rsrp-ThresholdsPrachInfoList*). It goes back to a better class only when its loss is
less than the threshold by a hysteresis, so that a device at a threshold does not change with each shadow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["THRESHOLDS_DB", "coverage_classes"]

THRESHOLDS_DB = (144.0, 154.0)
"""Coupling losses beyond which the next class begins."""


def coverage_classes(
    coupling_loss_db: NDArray[np.float64], hysteresis_db: float, before: NDArray[np.int8] | None
) -> NDArray[np.int8]:
    """The class of each device, which had the class *before*; None at the start.

    >>> coverage_classes(np.array([140.0, 143.0, 150.0, 160.0]), 3.0, np.array([1, 1, 0, 0], np.int8))
    array([0, 1, 1, 2], dtype=int8)
    """
    worse = np.searchsorted(THRESHOLDS_DB, coupling_loss_db, side="left").astype(np.int8)
    if before is None:
        return worse
    back = np.searchsorted(THRESHOLDS_DB, coupling_loss_db + hysteresis_db, side="left").astype(np.int8)
    return np.maximum(worse, np.minimum(before, back))
