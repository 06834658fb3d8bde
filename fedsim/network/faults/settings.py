"""The ``faults`` section of a scenario: what fails, when, for how long, and what that does to messages and devices."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from annotated_types import Ge, Interval
from pydantic import Strict

from fedsim.settings import PositiveOrInfinite, Settings, Several, key_rule

__all__ = ["FaultsSettings", "RandomFaults", "ScheduledFault"]

Ends = Annotated[tuple[str, str], Strict(False)]

Seconds = Annotated[float, Interval(ge=1e-3, le=1e12)]
"""From a millisecond (what is shorter is a lost packet) to 30,000 years, in which the clock still resolves 0.1 ms."""


class ScheduledFault(Settings):
    """One node or one wire that fails at a given time, once or again and again."""

    node: str | None = None
    """A sensor, base station, edge server or cloud: it fails with all its links; or give ``link``."""
    link: Ends | None = None
    """The two ends of a wire; or give ``node``."""
    at_s: Annotated[float, Interval(ge=0, le=1e12)]
    """When it fails (first)."""
    for_s: Seconds | None = None
    """How long; left out: for ever."""
    every_s: Seconds | None = None
    """It fails again after every so many seconds, counted from failure to failure; left out: once."""

    @key_rule
    def _one_thing_and_in_order(self) -> None:
        if (self.node is None) == (self.link is None):
            given = "nothing" if self.node is None else f"node={self.node!r} and link={list(self.link or ())}"
            raise ValueError(f"give either node or link, one of them and not both; {given} is given")
        if self.every_s is not None and (self.for_s is None or self.for_s >= self.every_s):
            lasts = "for ever" if self.for_s is None else f"for_s={self.for_s:g}"
            way_out = "; give for_s" if self.for_s is None else ""
            raise ValueError(f"every_s={self.every_s:g} must be more than the outage lasts ({lasts}){way_out}")

    @property
    def lasts_s(self) -> float:
        """How long; infinite when it is for ever."""
        return math.inf if self.for_s is None else self.for_s


class RandomFaults(Settings):
    """Nodes or wires of one kind that fail by chance, each on its own: working and failed times are exponential."""

    of: Literal["sensors", "base_stations", "edges", "clouds", "wires"]
    """What fails; a node fails with all its links."""
    mean_up_s: Seconds
    """Mean time from the start, or from a repair, to the next failure."""
    mean_down_s: Annotated[PositiveOrInfinite, Ge(1e-3)]
    """Mean time from a failure to its repair; ``.inf``: never repaired."""
    only: Several[str] = ()
    """Only these nodes, by name; left out, all of the kind. Not for wires."""

    @key_rule
    def _wires_have_no_names(self) -> None:
        if self.only and self.of == "wires":
            raise ValueError("only names nodes, and a wire has no name; leave it out")


class FaultsSettings(Settings):
    """What fails, and what that means. Nothing fails unless it is listed."""

    scheduled: Several[ScheduledFault] = ()
    """Failures at given times."""
    random: Several[RandomFaults] = ()
    """Failures by chance."""
    messages: Literal["wait", "restart", "lose"] = "wait"
    """What becomes of a message on a link that fails. wait: it keeps what was sent and goes on after the outage;
    restart: it is sent again from its beginning, at most as often as ``loss.attempts`` says; lose: it is lost."""
    routing: Literal["fixed", "around_outages"] = "fixed"
    """Whether messages that set out during an outage take another way, if there is one."""
    device_memory: Literal["kept", "lost"] = "kept"
    """What a failed device remembers of earlier rounds when it is back, samples that wait in its buffer included."""
