"""What the numbers are that models of a regression learn to predict: their unit, and how large 1 is in it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from fedsim.errors import Misfit

__all__ = ["CYCLES", "NO_UNITS", "Target", "target_in"]

CYCLES = "cycles"
"""The unit of remaining useful life for which the score of PHM 2008 is made."""
_UNIT = re.compile("[a-z][a-z0-9]{0,19}")
NO_UNITS = frozenset({"global", "clients", "unseen", "own", "mean", "std", "min", "max"})
"""What follows ``rmse_`` in the names of other columns."""


@dataclass(frozen=True)
class Target:
    """A prediction of p means p times *scale*, in *unit*. Raises `ValueError` for what cannot name a column.

    >>> Target("cycles", scale=125.0).rmse
    'rmse_cycles'
    """

    unit: str
    """A word of small letters and digits: ``cycles``, ``hours``, ``mm``."""
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Check both."""
        if not isinstance(self.unit, str) or not _UNIT.fullmatch(self.unit) or self.unit in NO_UNITS:
            raise ValueError(f"unit={self.unit!r:.50} must be a word of at most 20 small letters and digits, as cycles")
        if not isinstance(self.scale, float) or not 0 < self.scale < math.inf:
            raise ValueError(f"scale={self.scale!r:.50} must be a finite number (float) above 0")

    @property
    def rmse(self) -> str:
        """What the root mean squared error in this unit is called."""
        return f"rmse_{self.unit}"


def target_in(unit: str | None, *, of_values: bool) -> Target | None:
    """The target of values that stand in that *unit*, from a key of that name; None without one.

    Raises `Misfit` for what is no unit, and where there are classes and no values.
    """
    if unit is None:
        return None
    if not of_values:
        raise Misfit(f"unit={unit!r:.50} is of numbers to predict, and here are classes; leave it out", "unit")
    try:
        return Target(unit)
    except ValueError as error:
        raise Misfit(str(error), "unit") from None
