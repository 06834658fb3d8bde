"""Path losses of halls: InF, by how dense the clutter of machines and shelves is, and whether stations are above it.

    LOS:   31.84 + 21.5 lg d + 19 lg f
    NLOS:  max(LOS, 33.0 + 25.5 lg d + 20 lg f)        sparse clutter, low station (SL)
           max(SL, 18.6 + 35.7 lg d + 20 lg f)         dense clutter, low station (DL)
           max(LOS, 32.4 + 23.0 lg d + 20 lg f)        sparse clutter, high station (SH)
           max(LOS, 33.63 + 21.9 lg d + 20 lg f)       dense clutter, high station (DH)

    P(LOS) = exp(-d_2D / k),   k = -clutter size / ln(1 - density)                                 low station
                               k times (h_BS - h_UT) / (clutter height - h_UT)                     high station

Where both antennas are above the clutter (HH) there is always line of sight. Source: TR 38.901 tables 7.4.1-1 and
7.4.2-1; densities and sizes by table 7.2-4, with the values of its calibration (table 7.8-7). Leaves out walls within
the hall, and which machine stands where.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Interval

from fedsim.errors import Misfit
from fedsim.kernel.philox import each
from fedsim.radio.propagation.path_loss import Numbers, OutOfRange, Ways
from fedsim.radio.propagation.standard import Flags, StandardPathLoss
from fedsim.radio.propagation.tables import Law, laws
from fedsim.settings import Positive, key_rule

__all__ = ["DenseHigh", "DenseLow", "HighHigh", "SparseHigh", "SparseLow"]

Sparse = Annotated[float, Interval(ge=0.001, lt=0.4)]
Dense = Annotated[float, Interval(ge=0.4, le=0.999)]


class _Clutter(StandardPathLoss):
    """A hall with clutter."""

    clutter_density: Annotated[float, Interval(ge=0.001, le=0.999)]
    """Part of the floor that machines and shelves cover."""
    clutter_size_m: Positive
    """Typical size of a machine or shelf."""

    def view_chances(self, ways: Ways) -> Numbers:
        """By the distance on the ground."""
        return each(math.exp, -ways.distance_m / self.decays_m(ways))

    def decays_m(self, ways: Ways) -> Numbers:
        """The distance over which the probability of line of sight falls to 1/e."""
        return np.full(len(ways), -self.clutter_size_m / math.log1p(-self.clutter_density))


class _HighStation(_Clutter):
    """One with base stations above the clutter."""

    clutter_height_m: Positive
    """How high machines and shelves are, below the base stations and above the devices."""

    def decays_m(self, ways: Ways) -> Numbers:
        """Longer than between low antennas: most of the way is above the clutter."""
        rise_m = ways.station_height_m - ways.device_height_m
        return super().decays_m(ways) * (rise_m / (self.clutter_height_m - ways.device_height_m))

    def sees(self, ways: Ways) -> Flags:
        """Where the antennas are on the two sides of the clutter's height."""
        self.check_heights(ways)
        return super().sees(ways)

    def check_heights(self, ways: Ways) -> None:
        """Raise `OutOfRange` for the first way whose device is above the clutter, or whose base station is not."""
        top_m = self.clutter_height_m
        for place in np.flatnonzero(ways.station_height_m <= top_m)[:1].tolist():
            raise OutOfRange(
                f"{self.name} holds for base stations above the clutter, which is {top_m:g} m high, and this one is at "
                f"{ways.station_height_m[place]:g} m; change station_height_m or clutter_height_m, or choose inf_sl or "
                "inf_dl",
                place,
            )
        for place in np.flatnonzero(ways.device_height_m >= top_m)[:1].tolist():
            raise OutOfRange(
                f"{self.name} holds for devices below the top of the clutter, which is {top_m:g} m high, and this one "
                f"is at {ways.device_height_m[place]:g} m; change its height_m, device_height_m or clutter_height_m, "
                "or choose inf_hh",
                place,
            )


class SparseLow(_Clutter):
    """InF-SL of TR 38.901: sparse clutter, station and devices below its top, 1 to 600 m, 0.5 to 100 GHz."""

    name: Literal["inf_sl"] = "inf_sl"
    row: ClassVar[str] = "inf_sl"
    clutter_density: Sparse = 0.2
    """Part of the floor that machines and shelves cover, below 0.4."""
    clutter_size_m: Positive = 10.0
    """Typical size of a machine or shelf."""


class DenseLow(_Clutter):
    """InF-DL of TR 38.901: dense clutter, station and devices below its top, 1 to 600 m, 0.5 to 100 GHz."""

    name: Literal["inf_dl"] = "inf_dl"
    row: ClassVar[str] = "inf_dl"
    clutter_density: Dense = 0.6
    """Part of the floor that machines and shelves cover, from 0.4 on."""
    clutter_size_m: Positive = 2.0
    """Typical size of a machine or shelf."""

    def nlos_db(self, ways: Ways, log_m: Numbers, log_ghz: float) -> Numbers:
        """Never less than in sparse clutter."""
        sparse_db = laws()["inf_sl", "nlos"].near_db(log_m, log_ghz)
        return np.maximum(super().nlos_db(ways, log_m, log_ghz), sparse_db)


class SparseHigh(_HighStation):
    """InF-SH of TR 38.901: sparse clutter, stations above it, devices below its top, 1 to 600 m, 0.5 to 100 GHz."""

    name: Literal["inf_sh"] = "inf_sh"
    row: ClassVar[str] = "inf_sh"
    clutter_density: Sparse = 0.2
    """Part of the floor that machines and shelves cover, below 0.4."""
    clutter_size_m: Positive = 10.0
    """Typical size of a machine or shelf."""
    clutter_height_m: Positive = 2.0
    """How high machines and shelves are, below the base stations and above the devices."""


class DenseHigh(_HighStation):
    """InF-DH of TR 38.901: dense clutter, stations above it, devices below its top, 1 to 600 m, 0.5 to 100 GHz."""

    name: Literal["inf_dh"] = "inf_dh"
    row: ClassVar[str] = "inf_dh"
    clutter_density: Dense = 0.6
    """Part of the floor that machines and shelves cover, from 0.4 on."""
    clutter_size_m: Positive = 2.0
    """Typical size of a machine or shelf."""
    clutter_height_m: Positive = 6.0
    """How high machines and shelves are, below the base stations and above the devices."""


class HighHigh(StandardPathLoss):
    """InF-HH of TR 38.901: a hall where both antennas are above the clutter, 1 to 600 m, 0.5 to 100 GHz."""

    name: Literal["inf_hh"] = "inf_hh"
    row: ClassVar[str] = "inf_hh"

    @key_rule
    def _always_in_view(self) -> None:
        if self.in_view == "never":
            raise Misfit("in_view=never does not go with inf_hh, whose antennas always see each other", "in_view")

    def view_chances(self, ways: Ways) -> Numbers:
        """Always."""
        return np.ones(len(ways))

    def law(self, way: Literal["los", "nlos", "o2i"]) -> Law:
        """There is no way without line of sight."""
        return super().law("los")
