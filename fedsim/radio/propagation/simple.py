"""Path losses in a formula or a number: a given loss, free space, and the law of the distance's logarithm.

**given**, the coupling loss that a planner or a standard states, such as the 144, 154 and 164 dB of NB-IoT's three
coverage classes (TR 45.820 clause 7.1). It needs no positions.

**free_space**, nothing but air between two antennas:

    loss = 20 log10(4 pi distance / wavelength)

Source: H. T. Friis, *A note on a simple transmission formula* (Proc. IRE 34, 1946). It holds in the far field; here
that begins at one wavelength. Leaves out the ground and everything that stands on it.

**log_distance**, measured surroundings in one number: the loss grows by 10 n decibels with each tenfold of distance.

    loss = reference loss + 10 exponent log10(distance / reference distance)

Source: T. S. Rappaport, *Wireless Communications: Principles and Practice* (2nd edition, 2002), section 4.9.1; its
table 4.6 has exponents measured in factories, 1.6 to 2.1 in view and 2.1 to 3.3 behind machines. Leaves out any
dependence on the carrier frequency but that of the reference loss.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval

from fedsim.errors import Misfit, UserError
from fedsim.radio.propagation.path_loss import Numbers, PathLossSettings, Ways
from fedsim.settings import Positive, key_rule

__all__ = ["FreeSpace", "GivenLoss", "LogDistance", "free_space_db", "wavelength_m"]

LIGHT_M_PER_S = 299_792_458.0
Decibels = Annotated[float, Interval(ge=-300, le=300)]
"""More is no radio."""


class GivenLoss(PathLossSettings):
    """The same loss for every device, wherever it stands: a coupling loss that is known."""

    name: Literal["given"] = "given"
    loss_db: Decibels
    """Decibels lost; with antenna gains of 0 dB, the coupling loss."""

    @key_rule
    def _no_distance(self) -> None:
        if self.min_distance_m is not None:
            raise Misfit(
                f"min_distance_m={self.min_distance_m:g} is for losses that depend on distance; leave it out",
                "min_distance_m",
            )

    @property
    def needs_distance(self) -> bool:
        """It is the same everywhere."""
        return False

    def nearest_m(self, carrier_hz: float) -> float:
        """Anywhere."""
        return 0.0

    def model_db(self, distance_m: float, carrier_hz: float) -> float:
        """As given."""
        return self.loss_db

    def losses_db(self, ways: Ways) -> Numbers:
        """As given, also where the distance is unknown."""
        return np.full(len(ways), self.loss_db)


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


class LogDistance(PathLossSettings):
    """A loss that grows by 10 x exponent decibels with each tenfold of the distance; holds from its reference on."""

    name: Literal["log_distance"] = "log_distance"
    exponent: Positive
    """2 in free space; measured in factories: 1.6 to 2.1 in view of the station, 2.1 to 3.3 behind machines."""
    reference_distance_m: Positive = 1.0
    """Where the reference loss holds."""
    reference_loss_db: Decibels | None = None
    """Loss at the reference distance; left out, that of free space."""

    def nearest_m(self, carrier_hz: float) -> float:
        """The reference distance."""
        return self.reference_distance_m

    def model_db(self, distance_m: float, carrier_hz: float) -> float:
        """The reference loss, and what the way from the reference distance adds."""
        beyond_db = 10 * self.exponent * math.log10(distance_m / self.reference_distance_m)
        return self._reference_db(carrier_hz) + beyond_db

    def _reference_db(self, carrier_hz: float) -> float:
        if self.reference_loss_db is not None:
            return self.reference_loss_db
        far_m = wavelength_m(carrier_hz)
        if self.reference_distance_m < far_m:
            raise UserError(
                f"reference_distance_m={self.reference_distance_m:g} is nearer than a wavelength ({far_m:.3g} m), from "
                "which on the loss of free space holds; set it farther away, or give reference_loss_db"
            )
        return free_space_db(self.reference_distance_m, carrier_hz)
