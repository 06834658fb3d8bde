"""A drift says which mixture of phases a device sees, as a function of time or of rounds.

One class and one line per drift. Each phase has a group of classes, the same for all devices: the scenario names them,
or the classes are dealt at random into groups of equal size up to one. In a phase a device prefers the classes of that
phase's group; how strongly is ``strength``. A drift may come all at once (a new product on the line), bit by bit (one
product fades out while another one comes in, or a bearing wears), and come back (seasons, campaigns, a robot that takes
turns, working shifts day after day).
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import Annotated, Literal

from annotated_types import Interval, MaxLen, MinLen
from pydantic import field_validator

from fedsim.errors import Misfit
from fedsim.settings import Component, Fraction, NonNegative, Positive, Several, key_rule

__all__ = ["REGISTRY", "DriftSettings", "Gradual", "Recurring", "Shifts", "Sudden"]

REGISTRY = {
    "sudden": "fedsim.data.stream.drift:Sudden",
    "gradual": "fedsim.data.stream.drift:Gradual",
    "recurring": "fedsim.data.stream.drift:Recurring",
    "shifts": "fedsim.data.stream.drift:Shifts",
}

MOST_PHASES = 1000

Phases = Annotated[int, Interval(ge=2, le=MOST_PHASES)]
EIGHT_HOURS_S = 8 * 3600.0


class DriftSettings(Component):
    """Base of what is registered under "drifts"."""

    by: Literal["rounds", "sim_time_s"] = "rounds"
    """What the drift follows: the number of rounds finished, or simulated seconds."""
    strength: Fraction = 1.0
    """Chance that a sample comes from the phase's own classes, and not from all of the device's: at 1 nothing else is
    seen, unless the device has none of them."""

    groups: Annotated[Several[Annotated[Several[str], MinLen(1)]], MaxLen(MOST_PHASES)] = ()
    """The classes of each phase, by their names (by their numbers, where they have none); a class may be in several.
    Left out, the classes are dealt at random, each to one phase."""

    @property
    @abstractmethod
    def all_phases(self) -> int:
        """How many phases there are."""

    @key_rule
    def _a_group_for_each_phase(self) -> None:
        if self.groups and len(self.groups) != self.all_phases:
            problem = f"{len(self.groups)} groups of classes are named, and there are {self.all_phases} phases"
            raise Misfit(f"{problem}; name the classes of each phase, or leave it out", "groups")

    @abstractmethod
    def mixture(self, at: float) -> tuple[float, ...]:
        """(all_phases,) the share of each phase *at* so many rounds or seconds, adding up to 1."""


def _gone_by(at: float, length: float) -> int:
    """How many whole *length*s are over; number k is at k * length, however that is rounded.

    >>> _gone_by(6, 2.5), _gone_by(3 * 0.3, 0.3), 3 * 0.3 // 0.3
    (2, 3, 2.0)
    """
    whole = int(at // length)
    return whole + ((whole + 1) * length <= at)


def _only(phase: int, phases: int) -> tuple[float, ...]:
    """The mixture of nothing but one *phase*.

    >>> _only(1, 3)
    (0.0, 1.0, 0.0)
    """
    return tuple(float(each == phase) for each in range(phases))


def _ascending(moments: tuple[float, ...]) -> tuple[float, ...]:
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

    _ascend = field_validator("at")(_ascending)

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
        return _only(bisect_right(self.at, at), self.all_phases)


class Gradual(DriftSettings):
    """From one group of classes to another in a straight line between two moments."""

    name: Literal["gradual"] = "gradual"
    begin: NonNegative
    """Until then only the first phase is there: rounds finished, or simulated seconds."""
    end: Positive
    """From then on only the second one is."""

    @key_rule
    def _forward(self) -> None:
        if self.end <= self.begin:
            raise Misfit(f"end={self.end:g} must be later than begin={self.begin:g}", "end")

    @property
    def all_phases(self) -> int:
        """Two."""
        return 2

    def mixture(self, at: float) -> tuple[float, ...]:
        """The second phase's share grows linearly.

        >>> drift = Gradual(begin=10, end=20)
        >>> drift.mixture(10), drift.mixture(12.5), drift.mixture(25)
        ((1.0, 0.0), (0.75, 0.25), (0.0, 1.0))
        """
        done = min(max((at - self.begin) / (self.end - self.begin), 0.0), 1.0)
        return (1.0 - done, done)


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
        return _only(_gone_by(at, self.length) % self.phases, self.phases)


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
        of_day_s = since_start_s - _gone_by(since_start_s, day_s) * day_s
        return _only(min(bisect_right(ends_s, of_day_s), len(ends_s) - 1), len(ends_s))
