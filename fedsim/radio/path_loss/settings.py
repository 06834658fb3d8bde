"""A path-loss model says how many decibels are lost over a distance at a carrier frequency, in the median.

Leaves out shadowing (drawn elsewhere) and what lies between this device and its station in particular.
"""

from __future__ import annotations

from abc import abstractmethod

from fedsim.errors import UserError
from fedsim.settings import Component, Positive

__all__ = ["PathLossSettings"]


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
