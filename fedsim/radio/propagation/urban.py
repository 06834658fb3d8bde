"""Path losses of towns: UMa, a base station above the roofs, and UMi, one on a lamp post in a street canyon.

With line of sight, the loss grows faster beyond a breakpoint, from where on the ray that the ground reflects matters:

    d_BP = 4 (station height - h_E) (device height - h_E) frequency / c
    UMa:  28.0 + 22 lg d + 20 lg f;   beyond d_BP:  28.0 + 40 lg d + 20 lg f -   9 lg(d_BP^2 + height difference^2)
    UMi:  32.4 + 21 lg d + 20 lg f;   beyond d_BP:  32.4 + 40 lg d + 20 lg f - 9.5 lg(d_BP^2 + height difference^2)

The heights count from an environment of cars and people on, h_E = 1 m. Source: TR 38.901 tables 7.4.1-1 and 7.4.2-1.
Leaves out that for devices above 13 m UMa's h_E is drawn, so that some of them have a nearer breakpoint: there it is 1
m, too.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from fedsim.kernel.philox import each
from fedsim.radio.propagation.path_loss import Numbers, Ways
from fedsim.radio.propagation.standard import LIGHT_M_PER_S, StandardPathLoss, seen_in_streets

__all__ = ["UrbanMacro", "UrbanMicro"]

ENVIRONMENT_M = 1.0
"""Effective height of the environment, h_E."""
ROOFS_M = 13.0
"""Height above which devices of UMa see more."""


class _Urban(StandardPathLoss):
    """What both have in common."""

    def los_db(self, ways: Ways, log_m: Numbers, log_ghz: float) -> Numbers:
        """With another slope beyond the breakpoint."""
        law = self.law("los")
        above_m = (ways.station_height_m - ENVIRONMENT_M) * (ways.device_height_m - ENVIRONMENT_M)
        break_m = 4 * above_m * (ways.carrier_hz / LIGHT_M_PER_S)
        rise_m = ways.station_height_m - ways.device_height_m
        log_of_break = each(math.log10, break_m * break_m + rise_m * rise_m)
        far_db = law.far_away_db(log_m, log_ghz, log_of_break)
        return np.where(ways.distance_m <= break_m, law.near_db(log_m, log_ghz), far_db)

    def view_chances(self, ways: Ways) -> Numbers:
        """By the part of the distance that is out of doors."""
        return seen_in_streets(self.row, ways.street_m)


class UrbanMacro(_Urban):
    """UMa of TR 38.901: a town, from a base station above the roofs, 10 m to 5 km, 0.5 to 100 GHz."""

    name: Literal["uma"] = "uma"
    row: ClassVar[str] = "uma"

    def view_chances(self, ways: Ways) -> Numbers:
        """Devices above 13 m see over some of the roofs."""
        chances = super().view_chances(ways)
        high = np.flatnonzero(ways.device_height_m > ROOFS_M)
        if high.size:
            street_m = ways.street_m[high]
            above = (ways.device_height_m[high] - ROOFS_M) / 10
            more = above * np.sqrt(above)  # to the power of 1.5
            hundreds = street_m / 100
            bump = 1.25 * hundreds * hundreds * hundreds * each(math.exp, -street_m / 150)
            chances[high] *= np.where(street_m <= 18, 1.0, 1 + more * bump)
        return chances


class UrbanMicro(_Urban):
    """UMi of TR 38.901: a street canyon, from a base station below the roofs, 10 m to 5 km, 0.5 to 100 GHz."""

    name: Literal["umi"] = "umi"
    row: ClassVar[str] = "umi"
