"""Measured surroundings in one number: the loss grows by 10 n decibels with each tenfold of the distance.

    loss = reference loss + 10 exponent log10(distance / reference distance)

Source: T. S. Rappaport, *Wireless Communications: Principles and Practice* (2nd edition, 2002), section 4.9.1; its
table 4.6 has exponents measured in factories, 1.6 to 2.1 in view and 2.1 to 3.3 behind machines. Leaves out any
dependence on the carrier frequency but that of the reference loss.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from annotated_types import Interval

from fedsim.errors import UserError
from fedsim.radio.path_loss.free_space import free_space_db, wavelength_m
from fedsim.radio.path_loss.settings import PathLossSettings
from fedsim.settings import Positive

__all__ = ["LogDistance"]


class LogDistance(PathLossSettings):
    """A loss that grows by 10 x exponent decibels with each tenfold of the distance; holds from its reference on."""

    name: Literal["log_distance"] = "log_distance"
    exponent: Positive
    """2 in free space; measured in factories: 1.6 to 2.1 in view of the station, 2.1 to 3.3 behind machines."""
    reference_distance_m: Positive = 1.0
    """Where the reference loss holds."""
    reference_loss_db: Annotated[float, Interval(ge=-300, le=300)] | None = None
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
