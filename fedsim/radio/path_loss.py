"""A path-loss model says how many decibels are lost over a distance at a carrier frequency, in the median.

One class and one line per model. Leaves out shadowing (drawn elsewhere) and what lies between this device and its
station in particular.

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
from abc import abstractmethod
from typing import Annotated, Literal

from annotated_types import Interval

from fedsim.errors import UserError
from fedsim.settings import Component, Positive

__all__ = ["REGISTRY", "FreeSpace", "LogDistance", "PathLossSettings", "free_space_db", "wavelength_m"]

REGISTRY = {
    "free_space": "fedsim.radio.path_loss:FreeSpace",
    "log_distance": "fedsim.radio.path_loss:LogDistance",
}
LIGHT_M_PER_S = 299_792_458.0


class PathLossSettings(Component):
    """What is registered under "path_losses"."""

    min_distance_m: Positive | None = None
    """Nearer devices count as being so far away; left out, one that is nearer than the model holds is refused."""

    def loss_db(self, distance_m: float, carrier_hz: float) -> float:
        """Decibels lost between two antennas *distance_m* apart.

        Raises `UserError` when they are nearer than the model holds.
        """
        counted_m = max(distance_m, self.min_distance_m or 0.0)
        nearest_m = self.nearest_m(carrier_hz)
        if counted_m < nearest_m:
            raise UserError(
                f"{self.name} holds from {nearest_m:.3g} m on, and the distance is {counted_m:.3g} m; "
                f"move one of the two, or let nearer devices count as being there with min_distance_m: {nearest_m:.3g}"
            )
        return self.model_db(counted_m, carrier_hz)

    @abstractmethod
    def nearest_m(self, carrier_hz: float) -> float:
        """The distance from which on the model holds; above 0."""

    @abstractmethod
    def model_db(self, distance_m: float, carrier_hz: float) -> float:
        """The model's formula, for a distance at which it holds."""


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
