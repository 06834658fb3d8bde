"""Path losses of offices: InH, base stations under the ceiling, open-plan or with walls.

    LOS:   32.4 + 17.3 lg d + 20 lg f
    NLOS:  max(LOS, 17.3 + 38.3 lg d + 24.9 lg f)

Both kinds of office have the same losses and differ in how often a device has line of sight. Source: TR 38.901 tables
7.4.1-1 and 7.4.2-1. Leaves out floors: base station and device are on the same one.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.radio.propagation.path_loss import Numbers, Ways
from fedsim.radio.propagation.standard import StandardPathLoss, seen_in_steps

__all__ = ["MixedOffice", "OpenOffice"]


class _Office(StandardPathLoss):
    """What both have in common."""

    def view_chances(self, ways: Ways) -> Numbers:
        """By the distance on the ground."""
        return seen_in_steps(self.row, ways.distance_m)


class OpenOffice(_Office):
    """InH of TR 38.901, an open-plan office: 1 to 150 m, 0.5 to 100 GHz."""

    name: Literal["inh_open"] = "inh_open"
    row: ClassVar[str] = "inh_open"


class MixedOffice(_Office):
    """InH of TR 38.901, an office with rooms and corridors: 1 to 150 m, 0.5 to 100 GHz."""

    name: Literal["inh_mixed"] = "inh_mixed"
    row: ClassVar[str] = "inh_mixed"
