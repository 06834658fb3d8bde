"""A radio says how fast one device can send and receive; it knows nothing of time or of who else is on the air."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from fedsim.settings import Component

__all__ = ["RadioSettings", "Rates"]


@dataclass(frozen=True, slots=True)
class Rates:
    """One device's full rates in its cell, alone on the air."""

    uplink_bps: float
    downlink_bps: float


class RadioSettings(Component):
    """What is registered under "radios"."""

    @abstractmethod
    def rates(self) -> Rates:
        """The full rates of a device in this cell."""
