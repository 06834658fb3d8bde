"""A drift that comes back: seasons, campaigns, a robot that takes turns."""

from __future__ import annotations

from typing import Literal

from fedsim.data.stream.drift.settings import DriftSettings, Phases, gone_by
from fedsim.data.stream.drift.sudden import only
from fedsim.settings import Positive

__all__ = ["Recurring"]


class Recurring(DriftSettings):
    """Phases of equal length take turns for ever."""

    name: Literal["recurring"] = "recurring"
    phases: Phases = 2
    """How many take turns."""
    length: Positive
    """How long each one lasts: rounds finished, or simulated seconds."""

    @property
    def all_phases(self) -> int:
        """``phases``."""
        return self.phases

    def mixture(self, at: float) -> tuple[float, ...]:
        """One phase alone; a moment of change belongs to the phase that begins.

        >>> [Recurring(phases=2, length=5).mixture(at) for at in (4, 5, 10)]
        [(1.0, 0.0), (0.0, 1.0), (1.0, 0.0)]
        """
        return only(gone_by(at, self.length) % self.phases, self.phases)
