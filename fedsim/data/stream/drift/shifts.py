"""Working shifts: early, late and night shift see different goods, day after day."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Annotated, Literal

from annotated_types import MaxLen, MinLen

from fedsim.data.stream.drift.settings import MOST_PHASES, DriftSettings, gone_by
from fedsim.data.stream.drift.sudden import only
from fedsim.settings import NonNegative, Positive, Several

__all__ = ["Shifts"]

EIGHT_HOURS_S = 8 * 3600.0


class Shifts(DriftSettings):
    """Shifts follow each other, day after day, each with goods of its own."""

    name: Literal["shifts"] = "shifts"
    by: Literal["sim_time_s"] = "sim_time_s"
    """Shifts follow the simulated clock."""
    lengths_s: Annotated[Several[Positive], MinLen(2), MaxLen(MOST_PHASES)] = (EIGHT_HOURS_S,) * 3
    """How long each shift of a day lasts; together they are one day."""
    start_s: NonNegative = 0.0
    """How much of the day is over when the run begins."""

    @property
    def all_phases(self) -> int:
        """The shifts of a day."""
        return len(self.lengths_s)

    def mixture(self, at: float) -> tuple[float, ...]:
        """One shift alone; the moment of change belongs to the shift that begins.

        >>> night_shift = Shifts(start_s=16 * 3600.0)
        >>> night_shift.mixture(0.0), night_shift.mixture(8 * 3600.0)
        ((0.0, 0.0, 1.0), (1.0, 0.0, 0.0))
        """
        ends_s = list(accumulate(self.lengths_s))
        since_start_s, day_s = self.start_s + at, ends_s[-1]
        of_day_s = since_start_s - gone_by(since_start_s, day_s) * day_s
        return only(min(bisect_right(ends_s, of_day_s), len(ends_s) - 1), len(ends_s))
