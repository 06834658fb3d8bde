"""A source of signal-to-noise ratios: a median for each device and direction, and shadowing around it.

Leaves out interference that comes and goes: it is a margin, if anything.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated

from annotated_types import Interval

from fedsim.radio.budget import PowerBudget
from fedsim.radio.settings import SensorSite, UpDown
from fedsim.radio.shadowing import Shadowing
from fedsim.settings import Component

__all__ = ["Decibels", "SnrSettings"]

Decibels = Annotated[float, Interval(ge=-300, le=300)]
"""More is no radio."""


class SnrSettings(Component):
    """What is registered under "snrs"."""

    shadowing: Shadowing | None = None
    """What is drawn around the median for each device; nothing when left out."""

    @abstractmethod
    def median_db(self, site: SensorSite, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """The device's ratios without shadowing. Raises `UserError` when they cannot be known."""

    def power(self, site: SensorSite, bandwidths_hz: UpDown[float]) -> UpDown[PowerBudget] | None:
        """What the median consists of; None where it is just given."""
        return None

    def losses_db(self, site: SensorSite) -> Iterator[tuple[float, float]]:
        """The device's losses by shadowing: (seconds from which it holds, decibels), the first at 0; may be endless."""
        return self.shadowing.losses_db(site) if self.shadowing else iter([(0.0, 0.0)])

    def least_loss_db(self, site: SensorSite) -> float:
        """The least loss by shadowing that the device can count on."""
        return self.shadowing.least_db(site) if self.shadowing else 0.0
