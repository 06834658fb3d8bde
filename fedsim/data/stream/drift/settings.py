"""A drift says which mixture of phases a device sees, as a function of time or of rounds.

The classes are dealt at random into as many groups as there are phases, of equal size up to one, the same for all
devices. In a phase a device prefers the classes of that phase's group; how strongly is ``strength``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from annotated_types import Interval

from fedsim.settings import Component, Fraction

__all__ = ["MOST_PHASES", "DriftSettings", "Phases", "gone_by"]

MOST_PHASES = 1000

Phases = Annotated[int, Interval(ge=2, le=MOST_PHASES)]


class DriftSettings(Component):
    """Base of what is registered under "drifts"."""

    by: Literal["rounds", "sim_time_s"] = "rounds"
    """What the drift follows: the number of rounds finished, or simulated seconds."""
    strength: Fraction = 1.0
    """Chance that a sample comes from the phase's own classes, and not from all of the device's: at 1 nothing else is
    seen, unless the device has none of them."""

    @property
    @abstractmethod
    def all_phases(self) -> int:
        """How many phases there are."""

    @abstractmethod
    def mixture(self, at: float) -> tuple[float, ...]:
        """(all_phases,) the share of each phase *at* so many rounds or seconds, adding up to 1."""


def gone_by(at: float, length: float) -> int:
    """How many whole *length*s are over; number k is at k * length, however that is rounded.

    >>> gone_by(6, 2.5), gone_by(3 * 0.3, 0.3), 3 * 0.3 // 0.3
    (2, 3, 2.0)
    """
    whole = int(at // length)
    return whole + ((whole + 1) * length <= at)
