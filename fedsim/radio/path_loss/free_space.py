"""Nothing but air between two antennas.

    loss = 20 log10(4 pi distance / wavelength)

Source: H. T. Friis, *A note on a simple transmission formula* (Proc. IRE 34, 1946). It holds in the far field; here
that begins at one wavelength. Leaves out the ground and everything that stands on it.
"""

from __future__ import annotations

import math
from typing import Literal

from fedsim.radio.path_loss.settings import PathLossSettings

__all__ = ["FreeSpace", "free_space_db", "wavelength_m"]

LIGHT_M_PER_S = 299_792_458.0


def wavelength_m(carrier_hz: float) -> float:
    """The wavelength in air.

    >>> round(wavelength_m(2.4e9), 4)
    0.1249
    """
    return LIGHT_M_PER_S / carrier_hz


def free_space_db(distance_m: float, carrier_hz: float) -> float:
    """Friis' loss over a positive distance.

    >>> round(free_space_db(100.0, 2.4e9), 2)
    80.05
    """
    return 20 * math.log10(4 * math.pi * distance_m / wavelength_m(carrier_hz))


class FreeSpace(PathLossSettings):
    """The loss with nothing in between, by Friis' formula; holds from one wavelength on."""

    name: Literal["free_space"] = "free_space"

    def nearest_m(self, carrier_hz: float) -> float:
        """A wavelength."""
        return wavelength_m(carrier_hz)

    def model_db(self, distance_m: float, carrier_hz: float) -> float:
        """Friis' loss."""
        return free_space_db(distance_m, carrier_hz)
