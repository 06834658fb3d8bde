"""Signal-to-noise ratios that were measured or assumed elsewhere.

Leaves out distance: the median is the same for every device, and only shadowing tells them apart.
"""

from __future__ import annotations

from typing import Literal

from fedsim.radio.settings import SensorSite, UpDown
from fedsim.radio.snr.settings import Decibels, SnrSettings

__all__ = ["Given"]


class Given(SnrSettings):
    """Signal-to-noise ratios given as numbers, the same for every device apart from shadowing."""

    name: Literal["given"] = "given"
    uplink_db: Decibels
    """At the base station."""
    downlink_db: Decibels
    """At the device."""

    def median_db(self, site: SensorSite, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """As given, whatever the bandwidth."""
        return UpDown(self.uplink_db, self.downlink_db)
