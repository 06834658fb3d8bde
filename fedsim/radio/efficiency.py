"""What a technology carries on a hertz at a signal-to-noise ratio: Shannon's bound, or 3GPP's fits of what is reached.

Leaves out the steps between modulation and coding schemes, block errors, fast fading and several antennas, as far as
the fits do not stand for them.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from fedsim.kernel.philox import each
from fedsim.radio.settings import UpDown

__all__ = ["SpectralEfficiency", "efficiencies", "shannon_bps_per_hz"]


def shannon_bps_per_hz(snr_db: float) -> float:
    """log2(1 + SNR), for any ratio in decibels without overflow.

    >>> round(shannon_bps_per_hz(0.0), 12), round(shannon_bps_per_hz(10.0), 4)
    (1.0, 3.4594)
    """
    exponent = snr_db / 10 * math.log2(10)  # SNR = 2 ** exponent
    return max(exponent, 0.0) + math.log1p(2.0 ** -abs(exponent)) / math.log(2)


@dataclass(frozen=True, slots=True)
class SpectralEfficiency:
    """How many bits one technology carries in a second on a hertz, in one direction.

        0                               below snr_min
        min(alpha log2(1 + SNR), most)  from there on

    Source: TR 36.942 annex A. With alpha 1 and no ends it is the bound itself: C. E. Shannon, *Communication in the
    presence of noise* (Proc. IRE 37, 1949).
    """

    alpha: float
    """Part of Shannon's bound that is reached."""
    snr_min_db: float
    """Below it there is no coverage."""
    most_bps_per_hz: float
    """What the densest modulation carries."""

    def bps_per_hz(self, snr_db: float) -> float:
        """Bits per second and hertz at a signal-to-noise ratio."""
        if snr_db < self.snr_min_db:
            return 0.0
        return min(self.alpha * shannon_bps_per_hz(snr_db), self.most_bps_per_hz)

    def bps_per_hz_of(self, snr_db: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same for many ratios at once: the very bits that each has alone.

        >>> efficiencies()["pure"].uplink.bps_per_hz_of(np.array([0.0, 10.0])).round(4)
        array([1.    , 3.4594])
        """
        exponent = snr_db / 10 * math.log2(10)
        beyond = each(math.log1p, each((2.0).__pow__, -np.abs(exponent))) / math.log(2)
        carried = np.minimum(self.alpha * (np.maximum(exponent, 0.0) + beyond), self.most_bps_per_hz)
        return np.where(snr_db < self.snr_min_db, 0.0, carried)


@cache
def efficiencies() -> dict[str, UpDown[SpectralEfficiency]]:
    """Profile -> both directions; ``fedsim/radio/efficiency.csv`` gives the source of each.

    >>> round(efficiencies()["lte_36942"].downlink.bps_per_hz(10.0), 3)
    2.076
    """
    found: dict[str, dict[str, SpectralEfficiency]] = {}
    with (resources.files("fedsim.radio") / "efficiency.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["profile"], {})[row["direction"]] = SpectralEfficiency(
                float(row["alpha"]), float(row["snr_min_db"]), float(row["most_bps_per_hz"])
            )
    return {profile: UpDown(**directions) for profile, directions in found.items()}
