"""A drift all at once: a new product on the line."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen
from pydantic import field_validator

from fedsim.data.stream.drift.settings import MOST_PHASES, DriftSettings
from fedsim.settings import Positive, Several

__all__ = ["Sudden", "ascending", "only"]


def only(phase: int, phases: int) -> tuple[float, ...]:
    """The mixture of nothing but one *phase*.

    >>> only(1, 3)
    (0.0, 1.0, 0.0)
    """
    return tuple(float(each == phase) for each in range(phases))


def ascending(moments: tuple[float, ...]) -> tuple[float, ...]:
    """Return *moments* when each is later than the one before; raise `ValueError` otherwise."""
    for before, after in pairwise(moments):
        if after <= before:
            raise ValueError(f"{after:g} comes after {before:g} and must be later than it")
    return moments


class Sudden(DriftSettings):
    """At each of a few moments everything changes at once: from one group of classes to the next."""

    name: Literal["sudden"] = "sudden"
    at: Annotated[Several[Positive], MinLen(1), MaxLen(MOST_PHASES - 1)]
    """Moments of change, ascending: rounds finished, or simulated seconds. There is one phase more than moments."""

    _ascend = field_validator("at")(ascending)

    @property
    def all_phases(self) -> int:
        """One more than there are moments."""
        return len(self.at) + 1

    def mixture(self, at: float) -> tuple[float, ...]:
        """One phase alone; a moment of change belongs to the phase that begins.

        >>> drift = Sudden(at=(10, 20))
        >>> drift.mixture(9.5), drift.mixture(10), drift.mixture(99)
        ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
        """
        return only(bisect_right(self.at, at), self.all_phases)
