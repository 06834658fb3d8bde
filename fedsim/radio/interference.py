"""Interference between the cells of a network: how far other cells lift the noise, by their load, from when on.

All cells that have one entry of the scenario for their radio are on one carrier. In linear power, with the coupling
loss of `fedsim.radio.snr` (median path loss, walls and extra loss, less both antennas' gains):

    down, at device i   I = sum over its neighbours c of  load_c x station power / loss(c, i)
    up, at station s    I = sum over the devices j of which s is a neighbour, of  a_j x d_j x device power / loss(s, j)
    margin              10 lg(1 + I / N) decibels, added to the given margin of the direction

    a_j     the part of one carrier that device j takes: offered bit/s x share / rate; divided by the sum of these
            over its cell where that is above 1
    load_c  the sum of a_j over the devices of cell c, so at most 1
    d_j     how much denser device j sends than if it spread its power over all of the carrier: 12 times on 1 of
            12 tones
    N       thermal noise in the band that the ratios are for, times the receiver's noise figure and the given margin

The neighbours of a device are the stations nearest to it (of equally near ones the first in the topology) that have
devices and stand on another mast than its own. Sectors of one mast on one carrier do disturb each other, but antennas
have no pattern here: each would be as loud as the device's own, while real ones are 20 dB weaker from behind (TR
36.942). So they are left out, and what they do at the edge of a sector belongs into the given margin.

Loads depend on rates, rates on margins, and margins on loads: the load coupling of I. Siomina and D. Yuan, *Analysis of
cell load coupling for LTE network planning and optimization* (IEEE Trans. Wireless Comm. 11(6), 2012), here for both
directions together. It is solved in steps, from no interference on. More interference means lower rates, lower rates
more load, and more load more interference, so by induction no step brings less than the one before; as no load is above
1 the steps converge, to the least solution that there is. They end when nobody's part of a carrier changes by more than
1e-9, or after 500. Some things may fall while interference rises: what one device has of a cell that is full, and what
one takes whose next row of a table is cheaper for each bit. Therefore where a step would bring less than the one
before, that of before is kept, which changes nothing where neither happens.

A device that interference leaves without a rate cannot be served, so its cell has a load of 1; such devices share all
of it in equal parts. One that lacks a rate even without interference, in either direction, offers nothing. With given
loads there is nothing to solve, the devices of a cell send equally often, and d_j is 1.

So a margin is a function of the topology, the radio and the entry of ``loads`` that holds: never of a run's messages,
of who is asked for, or of order. Leaves out shadowing, on ways to other stations and in the rates that loads follow
from; outages; power control; what a station without traffic sends (broadcast, reference signals); base stations that
agree on who sends; TDD networks that are not in step, where one direction disturbs the other; and that a cell with
several ``carriers`` spreads its devices: offer what there is on one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from annotated_types import Interval

from fedsim.errors import Misfit
from fedsim.settings import Count, NonNegative, Positive, Settings, Several, key_rule

__all__ = ["Interference", "OfferedTraffic"]

PartOfTime = Annotated[float, Interval(ge=0, le=1)]


class OfferedTraffic(Settings):
    """What other traffic the devices of all cells have from a moment on, each on average."""

    from_s: NonNegative
    """Simulated seconds from which on it holds, until the next entry's."""
    uplink_bps: NonNegative
    """Bits per second that each device has to send."""
    downlink_bps: NonNegative
    """Bits per second that each device is sent."""


class Interference(Settings):
    """What other cells on the same carrier do: the loads follow from traffic, or are given."""

    loads: Several[OfferedTraffic] | None = None
    """What the other traffic of these cells is like, from when on; the first entry is from 0 s on."""
    uplink_load: PartOfTime | None = None
    """In place of `loads`: the part of the time in which some device of every other cell sends."""
    downlink_load: PartOfTime | None = None
    """The part of the time in which every other base station sends."""
    neighbours: Count = 6
    """How many other base stations count for a device: those nearest to it, without those on its own station's mast."""
    within_m: Positive | None = None
    """Base stations farther away from a device than this do not count; left out, no distance is too far."""

    @key_rule
    def _one_of_two_forms(self) -> None:
        given = (self.uplink_load is not None, self.downlink_load is not None)
        if any(given) == (self.loads is not None) or any(given) != all(given):
            raise ValueError(
                "needs either loads (a list of from_s, uplink_bps and downlink_bps: what devices offer), or both "
                "uplink_load and downlink_load (the part of the time in which every other cell sends)"
            )

    @key_rule
    def _in_order_of_time(self) -> None:
        if self.loads is None:
            return
        if not self.loads or self.loads[0].from_s != 0:
            first = f"begins at from_s={self.loads[0].from_s:g}" if self.loads else "is empty"
            raise Misfit(f"{first}, and its first entry must say what holds from 0 s on; add from_s: 0.0", "loads")
        for number, (one, other) in enumerate(pairwise(self.loads), 1):
            if other.from_s <= one.from_s:
                raise Misfit(
                    f"from_s={other.from_s:g} must be later than the entry before, from_s={one.from_s:g}; put the "
                    "entries in order of time",
                    *("loads", number, "from_s"),
                )

    @property
    def from_s(self) -> Sequence[float]:
        """When margins change, the first time being 0."""
        return (0.0,) if self.loads is None else [entry.from_s for entry in self.loads]
