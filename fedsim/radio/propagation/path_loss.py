"""A path-loss model says how many decibels are lost between two antennas, in the median.

It is asked for many ways at once. A law of the distance alone needs no more than `PathLossSettings.nearest_m` and
`PathLossSettings.model_db`; one that knows heights, walls or lines of sight works on `Ways`. Leaves out shadowing
(`fedsim.radio.propagation.shadowing`) and what lies between this device and its station in particular.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.errors import UserError
from fedsim.kernel.philox import each
from fedsim.settings import Component, Positive

__all__ = ["Numbers", "OutOfRange", "OwnShadows", "PathLossSettings", "Ways"]

Numbers = NDArray[np.float64]
"""One for each of many ways, in their order."""


class OutOfRange(UserError):
    """A way for which a model does not hold."""

    def __init__(self, problem: str, place: int) -> None:
        super().__init__(problem)
        self.place = place
        """Which of the ways it is."""


@dataclass(frozen=True, eq=False, slots=True)
class Ways:
    """Ways over the air between devices and base stations, as far as a path-loss model may know them."""

    distance_m: Numbers
    """On the ground; NaN where it is unknown."""
    carrier_hz: float
    station_height_m: Numbers
    """Of the base station's antenna above the ground."""
    device_height_m: Numbers
    """The same of the device's; where heights are unknown, both are 0."""
    indoor_m: Numbers
    """How much of the distance is behind the outer wall of a building; NaN where there is no such wall."""
    lots: Numbers
    """A uniform number from 0 on and below 1, which decides whether the two see each other."""

    @classmethod
    def of(
        cls,
        distance_m: ArrayLike,
        carrier_hz: float,
        heights_m: tuple[float, float] = (0.0, 0.0),
        indoor_m: ArrayLike = math.nan,
        lots: ArrayLike = 0.0,
    ) -> Ways:
        """Ways with the same *heights_m*, of the station and of the device; by default all are in line of sight.

        >>> Ways.of([40.0, 0.0], 1e9, heights_m=(31.5, 1.5)).space_m
        array([50., 30.])
        """
        parts = np.broadcast_arrays(*(np.array(part, np.float64) for part in (distance_m, *heights_m, indoor_m, lots)))
        distance, *others = (np.atleast_1d(part) for part in parts)
        return cls(distance, carrier_hz, *others)

    def __len__(self) -> int:
        return len(self.distance_m)

    @property
    def space_m(self) -> Numbers:
        """The distances between the antennas."""
        rise_m = self.station_height_m - self.device_height_m
        if not rise_m.any():
            return self.distance_m
        return np.fromiter(map(math.hypot, self.distance_m.tolist(), rise_m.tolist()), np.float64, len(self))

    @property
    def street_m(self) -> Numbers:
        """The part of the distance on the ground that is out of doors."""
        return np.maximum(self.distance_m - self.walled_m, 0.0)

    @property
    def walled_m(self) -> Numbers:
        """The part of it that is behind an outer wall."""
        return np.where(self.indoors, self.indoor_m, 0.0)

    @property
    def indoors(self) -> NDArray[np.bool_]:
        """Whether there is an outer wall on the way."""
        return ~np.isnan(self.indoor_m)

    def counted_from(self, least_m: float | None) -> Ways:
        """The same, where those nearer than *least_m* count as being so far away on the ground."""
        return self if least_m is None else replace(self, distance_m=np.maximum(self.distance_m, least_m))


@dataclass(frozen=True, eq=False, slots=True)
class OwnShadows:
    """What a model says of the shadowing around its medians."""

    sigma_db: Numbers
    """Standard deviation."""
    correlation_m: Numbers
    """Distance between two devices over which the correlation of their shadows falls to 1/e."""
    reference_m: float
    """One distance for all that the model may have, near all of them."""


class PathLossSettings(Component):
    """What is registered under "path_losses"."""

    min_distance_m: Positive | None = None
    """Nearer devices count as being so far away; left out, one that is nearer than the model holds is refused."""

    @abstractmethod
    def nearest_m(self, carrier_hz: float) -> float:
        """The distance from which on the model holds; above 0."""

    @abstractmethod
    def model_db(self, distance_m: float, carrier_hz: float) -> float:
        """The model's formula, for a distance at which it holds."""

    def losses_db(self, ways: Ways) -> Numbers:
        """Decibels lost on each way. Raises `OutOfRange` for the first for which the model does not hold.

        By default a function of the distance in space alone.
        """
        counted_m = np.maximum(ways.space_m, self.min_distance_m or 0.0)
        nearest_m = self.nearest_m(ways.carrier_hz)
        self.refuse_nearer(counted_m, nearest_m)
        return each(lambda distance_m: self.model_db(distance_m, ways.carrier_hz), counted_m)

    def over_db(self, distance_m: float, carrier_hz: float) -> float:
        """Decibels lost over one distance: in space; on the ground where the model has usual heights.

        Raises `UserError` when it is nearer than the model holds.
        """
        return float(self.losses_db(Ways.of(distance_m, carrier_hz, self.usual_heights_m or (0.0, 0.0)))[0])

    def refuse_nearer(self, counted_m: Numbers, nearest_m: float) -> None:
        """Raise `OutOfRange` for the first distance at which the model does not hold yet."""
        for place in np.flatnonzero(counted_m < nearest_m)[:1].tolist():
            raise OutOfRange(
                f"{self.name} holds from {nearest_m:.3g} m on, and the distance is {counted_m[place]:.3g} m; "
                f"move one of the two, or let nearer devices count as being there with min_distance_m: {nearest_m:.3g}",
                place,
            )

    @property
    def usual_heights_m(self) -> tuple[float, float] | None:
        """Heights of a station's and a device's antenna where nobody gives them; None: without them, distances are on
        the ground."""
        return None

    @property
    def needs_distance(self) -> bool:
        """Whether the loss depends on where the two stand."""
        return True

    @property
    def has_shadows(self) -> bool:
        """Whether `own_shadows` says how deep shadows are, and how wide."""
        return False

    def own_shadows(self, ways: Ways) -> OwnShadows | None:
        """What the model's source says of the shadowing around its medians; None where it says nothing."""
        return None

    def check_carrier(self, carrier_hz: float) -> None:
        """Raise `UserError` when the model does not hold at this carrier frequency."""
