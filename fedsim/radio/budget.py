"""A link budget: every gain and loss between a sender's amplifier and the bits that arrive, in decibels.

    SNR = power + antenna gains - path loss - extra loss - penetration loss - shadowing
          - noise - noise figure - interference margin

Leaves out feeder losses as a term of their own (count them as extra loss) and other noise than thermal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOISE_DBM_PER_HZ", "LinkBudget", "PowerBudget", "Term", "noise_dbm"]

T = TypeVar("T", float, NDArray[np.float64])

NOISE_DBM_PER_HZ = -174.0
"""Thermal noise as 3GPP rounds it (TR 36.942, TR 45.820); k T at 290 K is -173.975 dBm/Hz, 0.025 dB more."""


def noise_dbm(bandwidth_hz: float) -> float:
    """Thermal noise in a bandwidth.

    >>> round(noise_dbm(180e3), 2)
    -121.45
    """
    return NOISE_DBM_PER_HZ + 10 * math.log10(bandwidth_hz)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerBudget:
    """One direction of a link, from the sender's power to the noise in the receiver, shadowing aside."""

    power_dbm: float
    antenna_gains_db: float
    """Of both ends."""
    path_loss_db: float = 0.0
    extra_loss_db: float = 0.0
    penetration_loss_db: float = 0.0
    """What a building takes away from a device inside."""
    noise_dbm: float
    """Thermal noise in the bandwidth."""
    noise_figure_db: float
    """What the receiver adds."""
    interference_margin_db: float

    @property
    def snr_db(self) -> float:
        """The median signal-to-noise ratio."""
        return self.snr_after(self.path_loss_db, self.extra_loss_db, self.penetration_loss_db)

    def snr_after(self, path_loss_db: T, extra_loss_db: T, penetration_loss_db: T) -> T:
        """The same with other losses, of one device or of many."""
        sent_dbm = self.power_dbm + self.antenna_gains_db
        received_dbm = sent_dbm - path_loss_db - extra_loss_db - penetration_loss_db
        return received_dbm - self.noise_dbm - self.noise_figure_db - self.interference_margin_db


Term = tuple[str, float, str]
"""Name, value, unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkBudget:
    """How one direction of one device's link comes to its rate."""

    power: PowerBudget | None
    """None where the signal-to-noise ratio is given as a number."""
    shadowing_db: float
    """Loss by shadowing; negative where it is a gain."""
    snr_db: float
    """With shadowing."""
    bandwidth_hz: float
    """What noise and ratio are for."""
    steps: Sequence[Term]
    """From the ratio to the rate."""
    rate_bps: float
    """What the device gets alone on the air."""
    row: str = ""
    """The row of the technology's table that is taken; empty for a radio without one."""

    def rows(self) -> list[Term]:
        """What it consists of, in the order in which it is worked out: (name, value, unit)."""
        way: list[Term] = []
        noise: list[Term] = []
        if self.power:
            way = [
                ("transmit power", self.power.power_dbm, "dBm"),
                ("antenna gains", self.power.antenna_gains_db, "dB"),
                ("path loss", self.power.path_loss_db, "dB"),
                ("extra loss", self.power.extra_loss_db, "dB"),
            ]
            if self.power.penetration_loss_db:
                way.append(("penetration loss", self.power.penetration_loss_db, "dB"))
            noise = [
                ("thermal noise", self.power.noise_dbm, "dBm"),
                ("noise figure", self.power.noise_figure_db, "dB"),
                ("interference margin", self.power.interference_margin_db, "dB"),
            ]
        return [
            *way,
            ("shadowing", self.shadowing_db, "dB"),
            *noise,
            ("SNR", self.snr_db, "dB"),
            ("bandwidth", self.bandwidth_hz, "Hz"),
            *self.steps,
            ("rate", self.rate_bps, "bit/s"),
        ]
