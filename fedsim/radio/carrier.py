"""A carrier turns signal-to-noise ratios into rates: bandwidth times what a technology carries on a hertz.

    rate = bandwidth x bits per second and hertz x share of time x duty, at most the category's maximum

Leaves out overhead for control and access: give the bandwidth that carries data (50 resource blocks of 180 kHz are 9
MHz of a 10 MHz carrier), or less. Leaves out the cell's other devices: a rate is what one device gets alone on the air.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.errors import Misfit, nearest
from fedsim.radio.efficiency import SpectralEfficiency, efficiencies
from fedsim.radio.fixed import profiles, technologies
from fedsim.radio.settings import Duplex, Rates, RatesOfMany, UpDown
from fedsim.settings import Positive, Settings, key_rule

__all__ = ["Carrier", "TddPattern"]

SYMBOLS = 14
"""Of a slot (TS 38.211, table 4.3.2-1, normal cyclic prefix)."""
MOST_SLOTS = 20
"""In 10 ms, the longest pattern of TS 38.331, at 30 kHz."""


class TddPattern(Settings):
    """How the two directions take turns on one carrier (time-division duplex), in slots that repeat.

        downlink = (slots D + slots S x special downlink symbols / 14) / slots
        uplink   = slots U / slots

    Source: TS 38.331, TDD-UL-DL-ConfigCommon. The special slot's uplink symbols carry sounding and control, no data.
    Leaves out the moment within a pattern at which something comes: it lasts a few milliseconds.

    >>> TddPattern(slots="DDDSU", special_downlink_symbols=10).time_shares
    UpDown(uplink=0.2, downlink=0.7428571428571429)
    """

    slots: str
    """A letter for each slot of the pattern, at most 20: D for downlink, U for uplink, S for a special one in between,
    as in `DDDSU`."""
    special_downlink_symbols: Annotated[int, Interval(ge=0, le=12)] | None = None
    """How many of the 14 symbols of a special slot carry data to the device; needed with an S, as in 10."""

    @key_rule
    def _a_pattern(self) -> None:
        slots, symbols = self.slots, self.special_downlink_symbols
        other = sorted(set(slots) - set("DSU"))
        if other or not slots:
            found = f"has {other[0]!r}" if other else "has no slot"
            rule = "slots are D (downlink), S (special) and U (uplink)"
            raise Misfit(f"slots={slots[:30]!r} {found}, and {rule}; write them like DDDSU", "slots")
        if len(slots) > MOST_SLOTS:
            raise Misfit(
                f"slots={slots[:30]!r} are {len(slots)} and must be at most {MOST_SLOTS}; write only what repeats",
                "slots",
            )
        for letter, direction in (("D", "downlink"), ("U", "uplink")):
            if letter not in slots:
                raise Misfit(f"slots={slots!r} has no {letter}, so there would be no {direction}; add one", "slots")
        if "S" in slots and symbols is None:
            raise Misfit(
                f"slots={slots!r} has a special slot: say how many of its {SYMBOLS} symbols carry data to the device "
                "with special_downlink_symbols, as in 10",
                "slots",
            )
        if "S" not in slots and symbols is not None:
            raise Misfit(
                f"special_downlink_symbols={symbols} is for special slots, and slots={slots!r} has none; leave it out, "
                "or write an S",
                "special_downlink_symbols",
            )

    @property
    def time_shares(self) -> UpDown[float]:
        """The part of the time in which the carrier carries data of each direction."""
        downlink = self.slots.count("D") + self.slots.count("S") * (self.special_downlink_symbols or 0) / SYMBOLS
        return UpDown(self.slots.count("U") / len(self.slots), downlink / len(self.slots))


class Carrier(Settings):
    """What signal-to-noise ratios are turned into rates with.

    >>> Carrier(profile="nr_38803", bandwidth_hz=1e6).rates_at(UpDown(-11.0, 40.0))
    Rates(uplink_bps=0.0, downlink_bps=5980000.0, uplink_share=1.0, downlink_share=1.0)
    """

    profile: Literal["pure", "lte_36942", "nr_38803"]
    """pure: Shannon's bound, which real radios stay below by half and more; lte_36942: LTE as 3GPP's TR 36.942 fits it,
    from -10 dB on; nr_38803: 5G as in TR 38.803."""
    bandwidth_hz: Positive | None = None
    """Bandwidth of each direction."""
    uplink_bandwidth_hz: Positive | None = None
    """Bandwidth from the device to the base station; with `downlink_bandwidth_hz`, instead of `bandwidth_hz`."""
    downlink_bandwidth_hz: Positive | None = None
    """Bandwidth from the base station to the device."""
    tdd: TddPattern | None = None
    """How the directions take turns on one band; left out, each has its bandwidth all the time."""
    category: str | None = None
    """The technology of the devices, such as `lte_m_m1` (`fedsim list profiles`): a device uses the technology's share
    of a carrier, and has its nominal rate at most, however good its ratio. Left out, it can use all of the carrier."""

    @key_rule
    def _bandwidth_once(self) -> None:
        given = self.uplink_bandwidth_hz is not None, self.downlink_bandwidth_hz is not None
        if self.bandwidth_hz is not None and any(given):
            key = "uplink_bandwidth_hz" if given[0] else "downlink_bandwidth_hz"
            raise Misfit(f"bandwidth_hz={self.bandwidth_hz:g} is for both directions already; leave one out", key)
        if self.bandwidth_hz is None and not all(given):
            raise ValueError("needs bandwidth_hz, or both uplink_bandwidth_hz and downlink_bandwidth_hz")
        if self.tdd is not None and self.bandwidth_hz is None:
            raise Misfit(
                f"uplink_bandwidth_hz={self.uplink_bandwidth_hz:g} is for a band of its own, and with tdd both "
                "directions take turns on one; give bandwidth_hz alone, or leave tdd out",
                "uplink_bandwidth_hz",
            )

    @key_rule
    def _known_category(self) -> None:
        if self.category is not None and self.category not in profiles():
            raise Misfit(
                f"no category is called {self.category!r}{nearest(self.category, profiles())} "
                f"(known: {', '.join(profiles())})",
                "category",
            )

    @key_rule
    def _one_carrier_of_the_category(self) -> None:
        technology = technologies().get(self.category or "")
        if technology is None:
            return
        for key in ("bandwidth_hz", "uplink_bandwidth_hz", "downlink_bandwidth_hz"):
            bandwidth_hz = getattr(self, key)
            if bandwidth_hz is not None and bandwidth_hz > technology.channel_hz:
                raise Misfit(
                    f"{key}={bandwidth_hz:g} is more than one carrier of {self.category} has "
                    f"({technology.channel_hz:g}); give that of one, and the cell carriers: how many there are",
                    key,
                )
        if (technology.duplex == "tdd") != (self.tdd is not None):
            own = (
                "one frequency for both directions, and" if self.tdd is None else "a frequency for each direction, and"
            )
            way_out = "give its tdd pattern" if self.tdd is None else "leave tdd out"
            with_it = "no tdd is given" if self.tdd is None else "with tdd they take turns on one"
            raise Misfit(f"{self.category} has {own} {with_it}; {way_out}, or name another category", "category")

    @property
    def bandwidths_hz(self) -> UpDown[float]:
        """The bandwidth of each direction."""
        if self.bandwidth_hz is not None:
            return UpDown(self.bandwidth_hz, self.bandwidth_hz)
        assert self.uplink_bandwidth_hz is not None and self.downlink_bandwidth_hz is not None
        return UpDown(self.uplink_bandwidth_hz, self.downlink_bandwidth_hz)

    @property
    def efficiency(self) -> UpDown[SpectralEfficiency]:
        """What the profile carries on a hertz."""
        return efficiencies()[self.profile]

    @property
    def time_shares(self) -> UpDown[float]:
        """The part of the time that each direction has."""
        return UpDown(1.0, 1.0) if self.tdd is None else self.tdd.time_shares

    @property
    def most_bps(self) -> UpDown[float]:
        """What a device of the category can do at most; infinite where there is no maximum."""
        if self.category is None:
            return UpDown(math.inf, math.inf)
        most = profiles()[self.category]
        return UpDown(most.uplink_bps, most.downlink_bps)

    @property
    def duties(self) -> UpDown[float]:
        """The part of a carrier that one device can use."""
        if self.category is None:
            return UpDown(1.0, 1.0)
        own = profiles()[self.category]
        return UpDown(own.uplink_share, own.downlink_share)

    @property
    def category_duplex(self) -> Duplex:
        """Half where the category is one of half-duplex devices."""
        return "half" if self.category is not None and technologies()[self.category].duplex == "half" else "full"

    def rates_at(self, snr_db: UpDown[float]) -> Rates:
        """The rates at these signal-to-noise ratios."""
        uplink_bps, downlink_bps = (
            min(hz * efficiency.bps_per_hz(db) * share * duty, most_bps)
            for hz, efficiency, db, share, duty, most_bps in zip(
                *(self.bandwidths_hz, self.efficiency, snr_db, self.time_shares, self.duties, self.most_bps),
                strict=True,
            )
        )
        return Rates(uplink_bps, downlink_bps, *self.duties)

    def carried(self, snr_db: UpDown[NDArray[np.float64]], *, cut: bool = True) -> RatesOfMany:
        """The same for many devices at once: the very bits that each has alone. Without *cut* there is no maximum."""
        uplink_bps, downlink_bps = (
            np.minimum(hz * efficiency.bps_per_hz_of(db) * share * duty, most_bps if cut else math.inf)
            for hz, efficiency, db, share, duty, most_bps in zip(
                *(self.bandwidths_hz, self.efficiency, snr_db, self.time_shares, self.duties, self.most_bps),
                strict=True,
            )
        )
        uplink_share, downlink_share = (np.full(len(uplink_bps), duty) for duty in self.duties)
        return RatesOfMany(uplink_bps, downlink_bps, uplink_share, downlink_share)
