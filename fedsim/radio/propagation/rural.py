"""Path loss of the country: RMa, a base station on a tall mast, villages and fields.

    LOS:   PL1 = 20 lg(40 pi d f / 3) + min(0.03 h^1.72, 10) lg d - min(0.044 h^1.72, 14.77) + 0.002 lg(h) d
           beyond d_BP = 2 pi (station height) (device height) frequency / c:   PL1(d_BP) + 40 lg(d / d_BP)
    NLOS:  161.04 - 7.1 lg W + 7.5 lg h - (24.37 - 3.7 (h / h_BS)^2) lg h_BS + (43.42 - 3.1 lg h_BS) (lg d - 3)
           + 20 lg f - (3.2 lg(11.75 h_UT)^2 - 4.97)

with d in metres in space, f in gigahertz, the mean height h of buildings and the mean width W of streets. Source: TR
38.901 tables 7.4.1-1 and 7.4.2-1. d_BP is on the ground, so the loss steps up there by a few hundredths of a decibel,
as it does in the standard.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Interval

from fedsim.kernel.philox import each
from fedsim.radio.propagation.path_loss import Numbers, Ways
from fedsim.radio.propagation.standard import LIGHT_M_PER_S, StandardPathLoss, seen_in_steps

__all__ = ["RuralMacro"]

AroundHere = Annotated[float, Interval(ge=5, le=50)]
"""Metres: what table 7.4.1-1 allows for streets and buildings."""


class RuralMacro(StandardPathLoss):
    """RMa of TR 38.901: the country, from a tall mast, 10 m to 10 km (5 km without line of sight), 0.5 to 30 GHz."""

    name: Literal["rma"] = "rma"
    row: ClassVar[str] = "rma"
    street_width_m: AroundHere = 20.0
    """Mean width of the streets, W."""
    building_height_m: AroundHere = 5.0
    """Mean height of the buildings, h."""

    def view_chances(self, ways: Ways) -> Numbers:
        """By the part of the distance that is out of doors."""
        return seen_in_steps(self.row, ways.street_m)

    def los_db(self, ways: Ways, log_m: Numbers, log_ghz: float) -> Numbers:
        """With another slope beyond the breakpoint."""
        break_m = self._break_m(ways)
        log_of_break = each(math.log10, break_m)
        near_db = self._near_db(ways.space_m, log_m, log_ghz)
        law = self.law("los")
        far_db = self._near_db(break_m, log_of_break, log_ghz) + law.far_decade_db * (log_m - log_of_break)
        return np.where(ways.distance_m <= break_m, near_db, far_db)

    def _near_db(self, space_m: Numbers, log_m: Numbers, log_ghz: float) -> Numbers:
        built: float = self.building_height_m**1.72
        constant_db = (
            20 * math.log10(40 * math.pi / 3) - min(0.044 * built, 14.77) + self.law("los").carrier_db * log_ghz
        )
        slope_db = 20 + min(0.03 * built, 10.0)
        return constant_db + slope_db * log_m + 0.002 * math.log10(self.building_height_m) * space_m

    def _break_m(self, ways: Ways) -> Numbers:
        break_m: Numbers = (
            2 * math.pi * ways.station_height_m * ways.device_height_m * (ways.carrier_hz / LIGHT_M_PER_S)
        )
        return break_m

    def nlos_db(self, ways: Ways, log_m: Numbers, log_ghz: float) -> Numbers:
        """With streets, buildings and both heights."""
        law = self.law("nlos")
        log_station = each(math.log10, ways.station_height_m)
        log_device = each(math.log10, 11.75 * ways.device_height_m)
        low = self.building_height_m / ways.station_height_m
        around_db = 7.5 * math.log10(self.building_height_m) - 7.1 * math.log10(self.street_width_m)
        station_db = (24.37 - 3.7 * low * low) * log_station
        slope_db = law.per_decade_db - 3.1 * log_station
        device_db = 3.2 * log_device * log_device - 4.97
        fixed_db = law.constant_db + around_db + law.carrier_db * log_ghz
        return fixed_db - station_db + slope_db * (log_m - 3) - device_db

    def los_sigma_db(self, ways: Ways) -> Numbers:
        """More beyond the breakpoint."""
        law = self.law("los")
        return np.where(ways.distance_m <= self._break_m(ways), law.sigma_db, law.far_sigma_db)
