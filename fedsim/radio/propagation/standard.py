"""What the models of 3GPP TR 38.901 clause 7.4 have in common.

Each has one law with line of sight (LOS) and one without (NLOS). Which of them holds is drawn once for each device and
mast, with a probability that depends on the distance; the loss without line of sight is never below that with it:

    LOS:   loss = constant + slope log10(distance) + c log10(frequency)
    NLOS:  loss = max(LOS, constant' + slope' log10(distance) + c' log10(frequency) - h (device height - 1.5 m))

with the distance in metres between the antennas and the frequency in gigahertz. Source: tables 7.4.1-1 (path loss),
7.4.2-1 (probability of line of sight) and 7.5-6 (shadowing). Leaves out the standard's optional NLOS formulas, and that
neighbours see a station together (clause 7.6.3.3): each device draws for itself.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import UserError
from fedsim.kernel.philox import each
from fedsim.radio.propagation.path_loss import Numbers, OutOfRange, OwnShadows, PathLossSettings, Ways
from fedsim.radio.propagation.tables import Law, Range, laws, ranges, sights

__all__ = ["LIGHT_M_PER_S", "Flags", "StandardPathLoss", "seen_in_steps", "seen_in_streets"]

LIGHT_M_PER_S = 3.0e8
"""As table 7.4.1-1 rounds it."""
Flags = NDArray[np.bool_]
"""One for each of many ways."""


class StandardPathLoss(PathLossSettings):
    """A path loss of TR 38.901."""

    in_view: Literal["drawn", "always", "never"] = "drawn"
    """Whether a device has line of sight to its base station. drawn: once for each, with the probability of TR 38.901
    table 7.4.2-1."""

    row: ClassVar[str]
    """The model's name in the tables."""

    @abstractmethod
    def view_chances(self, ways: Ways) -> Numbers:
        """The probability of line of sight."""

    def los_db(self, ways: Ways, log_m: Numbers, log_ghz: float) -> Numbers:
        """The loss with line of sight, at logarithms of the distance in space and the frequency."""
        return self.law("los").near_db(log_m, log_ghz)

    def nlos_db(self, ways: Ways, log_m: Numbers, log_ghz: float) -> Numbers:
        """The formula without line of sight, before the larger of the two is taken."""
        law = self.law("nlos")
        return law.near_db(log_m, log_ghz) - law.height_db * (ways.device_height_m - 1.5)

    def law(self, way: Literal["los", "nlos", "o2i"]) -> Law:
        """The model's row in the table of path losses."""
        return laws()[self.row, way]

    @property
    def range(self) -> Range:
        """For which ways it holds."""
        return ranges()[self.row]

    @property
    def usual_heights_m(self) -> tuple[float, float]:
        """Those of the standard's scenario."""
        return self.range.station_m, self.range.device_m

    @property
    def has_shadows(self) -> bool:
        """By table 7.5-6."""
        return True

    def nearest_m(self, carrier_hz: float) -> float:
        """Out of doors on the ground, indoors in space."""
        return self.range.nearest_m

    def model_db(self, distance_m: float, carrier_hz: float) -> float:
        """On the ground between usual heights; with line of sight, unless ``in_view`` is ``never``."""
        return float(self.losses_db(Ways.of(distance_m, carrier_hz, self.usual_heights_m))[0])

    def sees(self, ways: Ways) -> Flags:
        """Which of the ways have line of sight."""
        if self.in_view == "drawn":
            return ways.lots < self.view_chances(ways.counted_from(self.min_distance_m))
        return np.full(len(ways), self.in_view == "always")

    def losses_db(self, ways: Ways) -> Numbers:
        """Decibels lost on each way. Raises `OutOfRange` for the first for which the model does not hold."""
        self.check_carrier(ways.carrier_hz)
        counted, sees = ways.counted_from(self.min_distance_m), self.sees(ways)
        self._check(counted, sees)
        log_m, log_ghz = each(math.log10, counted.space_m), math.log10(ways.carrier_hz / 1e9)
        los_db = self.los_db(counted, log_m, log_ghz)
        return np.where(sees, los_db, np.maximum(los_db, self.nlos_db(counted, log_m, log_ghz)))

    def own_shadows(self, ways: Ways) -> OwnShadows:
        """Those of table 7.5-6: with line of sight, without, and through a wall where the table has that."""
        sees = self.sees(ways)
        los, nlos = self.law("los"), self.law("nlos")
        sigma_db = np.where(sees, self.los_sigma_db(ways.counted_from(self.min_distance_m)), nlos.sigma_db)
        correlation_m = np.where(sees, los.correlation_m, nlos.correlation_m)
        if (self.row, "o2i") in laws():
            o2i = self.law("o2i")
            sigma_db = np.where(ways.indoors, o2i.sigma_db, sigma_db)
            correlation_m = np.where(ways.indoors, o2i.correlation_m, correlation_m)
        return OwnShadows(sigma_db, correlation_m, math.sqrt(los.correlation_m * nlos.correlation_m))

    def los_sigma_db(self, ways: Ways) -> Numbers:
        """Standard deviation of the shadowing with line of sight."""
        return np.full(len(ways), self.law("los").sigma_db)

    def check_carrier(self, carrier_hz: float) -> None:
        """Raise `UserError` outside of the standard's frequencies."""
        least, most = self.range.least_ghz, self.range.most_ghz
        if not least <= carrier_hz / 1e9 <= most:
            raise UserError(
                f"{self.name} holds from {least:g} to {most:g} GHz, and the carrier has {carrier_hz / 1e9:g} GHz; "
                "choose another carrier_hz, or another path_loss, such as log_distance"
            )

    def _check(self, ways: Ways, sees: Flags) -> None:
        on_ground = self.range.on == "ground"
        distance_m = ways.distance_m if on_ground else ways.space_m
        self.refuse_nearer(distance_m, self.range.nearest_m)
        farthest_m = np.where(sees, self.range.farthest_m, self.range.farthest_nlos_m)
        for place in np.flatnonzero(distance_m > farthest_m)[:1].tolist():
            view = "" if self.range.farthest_m == farthest_m[place] else " without line of sight"
            raise OutOfRange(
                f"{self.name} holds up to {farthest_m[place]:g} m{view}, and the distance is {distance_m[place]:.5g} "
                "m; move one of the two, or choose another path_loss, such as log_distance",
                place,
            )
        self.check_heights(ways)

    def check_heights(self, ways: Ways) -> None:
        """Raise `OutOfRange` for the first way whose antennas are not as high as the model has them."""
        known = self.range
        _refuse_heights(
            self.name,
            "base stations",
            "station_height_m",
            ways.station_height_m,
            known.lowest_station_m,
            known.highest_station_m,
        )
        _refuse_heights(
            self.name,
            "devices",
            "height_m of its place, or device_height_m",
            ways.device_height_m,
            known.lowest_device_m,
            known.highest_device_m,
        )


def _refuse_heights(name: str, what: str, key: str, height_m: Numbers, least_m: float, most_m: float) -> None:
    for place in np.flatnonzero((height_m < least_m) | (height_m > most_m))[:1].tolist():
        reach = f"from {least_m:g} to {most_m:g} m" if most_m < math.inf else f"from {least_m:g} m on"
        raise OutOfRange(
            f"{name} holds for {what} {reach} above the ground, and this one is at {height_m[place]:g} m; change "
            f"{key}, or choose another path_loss",
            place,
        )


def seen_in_streets(row: str, street_m: Numbers) -> Numbers:
    """Between buildings: 1 up to a distance a, then a/d + exp(-d/b) (1 - a/d).

    >>> seen_in_streets("umi", np.array([18.0, 36.0])).round(4)
    array([1.    , 0.6839])
    """
    sight = sights()[row]
    far_m = np.maximum(street_m, sight.near_m)
    part = sight.near_m / far_m
    return part + each(math.exp, -far_m / sight.decay_m) * (1 - part)


def seen_in_steps(row: str, distance_m: Numbers) -> Numbers:
    """1 up to a distance, then falling exponentially, and from another distance on more slowly.

    >>> seen_in_steps("inh_mixed", np.array([1.2, 5.9, 6.5])).round(4)
    array([1.    , 0.3679, 0.32  ])
    """
    sight = sights()[row]
    near = each(math.exp, -np.maximum(distance_m - sight.near_m, 0.0) / sight.decay_m)
    far = sight.middle_share * each(math.exp, -np.maximum(distance_m - sight.middle_m, 0.0) / sight.far_decay_m)
    beyond = distance_m >= sight.middle_m if sight.far_at_middle else distance_m > sight.middle_m
    return np.where(beyond, far, near)
