"""How often a damaged place of a rolling bearing is struck, by the bearing's geometry.

For a shaft that turns f_r times a second, n rolling elements of diameter d on a pitch circle of diameter D, and a
contact angle phi (R. B. Randall, J. Antoni, *Rolling element bearing diagnostics - A tutorial*, Mechanical Systems and
Signal Processing 25, 2011, equations 1 to 4):

    BPFO = n f_r / 2 (1 - d/D cos phi)        an element passes a place of the outer race, which stands still
    BPFI = n f_r / 2 (1 + d/D cos phi)        an element passes a place of the inner race, which turns
    FTF  =   f_r / 2 (1 - d/D cos phi)        the cage turns
    BSF  = D f_r / (2 d) (1 - (d/D cos phi)^2)   an element turns; its damaged place strikes both races, so 2 BSF times

They hold without slip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["BEARINGS", "Bearing"]


@dataclass(frozen=True, slots=True)
class Bearing:
    """One type of bearing. Frequencies are in parts of the shaft's.

    >>> bearing = Bearing("6205", elements=9, element_mm=7.94, pitch_mm=39.04, contact_angle_deg=0.0)
    >>> round(bearing.outer, 3), round(bearing.inner, 3), round(bearing.cage, 4), round(2 * bearing.spin, 3)
    (3.585, 5.415, 0.3983, 4.713)
    """

    name: str
    elements: int
    """Balls or rollers."""
    element_mm: float
    """Diameter of one of them."""
    pitch_mm: float
    """Diameter of the circle on which their centres are."""
    contact_angle_deg: float

    @property
    def _ratio(self) -> float:
        """d/D cos phi."""
        return self.element_mm / self.pitch_mm * math.cos(math.radians(self.contact_angle_deg))

    @property
    def outer(self) -> float:
        """BPFO / f_r."""
        return self.elements / 2 * (1 - self._ratio)

    @property
    def inner(self) -> float:
        """BPFI / f_r."""
        return self.elements / 2 * (1 + self._ratio)

    @property
    def cage(self) -> float:
        """FTF / f_r."""
        return (1 - self._ratio) / 2

    @property
    def spin(self) -> float:
        """BSF / f_r."""
        return self.pitch_mm / (2 * self.element_mm) * (1 - self._ratio**2)


MM_PER_INCH = 25.4

BEARINGS = (
    Bearing("6205", 9, 0.3126 * MM_PER_INCH, 1.537 * MM_PER_INCH, 0.0),  # drive end at Case Western Reserve University
    Bearing("6203", 8, 0.2656 * MM_PER_INCH, 1.122 * MM_PER_INCH, 0.0),  # fan end there
    Bearing("ZA-2115", 16, 0.331 * MM_PER_INCH, 2.815 * MM_PER_INCH, 15.17),  # IMS, University of Cincinnati
    Bearing("6804", 13, 3.5, 25.6, 0.0),  # PRONOSTIA, FEMTO-ST
    Bearing("NICE", 8, 0.235 * MM_PER_INCH, 1.245 * MM_PER_INCH, 0.0),  # MFPT's fault data sets
)
"""Types that well-known test rigs have, whose frequencies are published; each machine has one of them."""
