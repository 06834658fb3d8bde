"""Fixed rates: the same for every device of a cell, given as numbers or as the nominal rates of a technology.

Ignores distance, fading and interference; nominal rates are what one device gets alone on the air.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, cast

import numpy as np

from fedsim.errors import Misfit
from fedsim.radio.settings import Duplex, RadioPath, RadioSettings, Rates, RatesOfMany
from fedsim.registry import hint
from fedsim.settings import Fraction, PositiveOrInfinite, key_rule

__all__ = ["Fixed", "Technology", "profiles", "technologies"]


@dataclass(frozen=True, slots=True)
class Technology:
    """What a profile stands for."""

    rates: Rates
    """Of one device that has the air to itself."""
    channel_hz: float
    """Nominal bandwidth of one carrier and direction, guard bands included."""
    duplex: Literal["full", "half", "tdd"]
    """full and half: what a device can do, on a frequency for each direction; tdd: one frequency for both in turn, and
    the rates are what is left of it for each."""
    discipline: str
    """How cells share the air that do not say it."""


@cache
def technologies() -> dict[str, Technology]:
    """The profiles by name; ``fedsim/radio/profiles.csv`` gives the source of each.

    >>> technologies()["nb_iot_nb2"].duplex, technologies()["nr_100mhz_private"].duplex
    ('half', 'tdd')
    """
    with (resources.files("fedsim.radio") / "profiles.csv").open(encoding="utf-8") as file:
        return {
            row["name"]: Technology(
                Rates(
                    float(row["uplink_bps"]),
                    float(row["downlink_bps"]),
                    float(row["uplink_share"]),
                    float(row["downlink_share"]),
                ),
                float(row["channel_hz"]),
                cast(Literal["full", "half", "tdd"], row["duplex"]),
                row["discipline"],
            )
            for row in csv.DictReader(file)
        }


@cache
def profiles() -> dict[str, Rates]:
    """The nominal rates by technology.

    >>> profiles()["nb_iot_nb2"]
    Rates(uplink_bps=158500.0, downlink_bps=120800.0, uplink_share=0.625, downlink_share=0.5)
    """
    return {name: technology.rates for name, technology in technologies().items()}


class Fixed(RadioSettings):
    """The same fixed rates for every device of a cell: two numbers, or a technology's nominal ones."""

    name: Literal["fixed"] = "fixed"
    profile: str | None = None
    """A technology with nominal rates, such as ``nb_iot_nb1`` (``fedsim list profiles``); instead of the two rates."""
    uplink_bps: PositiveOrInfinite | None = None
    """Rate from the device to the base station; ``.inf`` for unlimited."""
    downlink_bps: PositiveOrInfinite | None = None
    """Rate from the base station to the device."""
    uplink_share: Fraction | None = None
    """Largest share of one carrier of the cell that one device can use alone at this rate; left out, all of it."""
    downlink_share: Fraction | None = None
    """The same of the downlink. A profile has its own shares."""

    @key_rule
    def _one_way_only(self) -> None:
        if self.profile is None:
            if self.uplink_bps is None or self.downlink_bps is None:
                raise ValueError("a fixed radio needs both uplink_bps and downlink_bps, or a profile")
            return
        if self.uplink_bps is not None or self.downlink_bps is not None:
            raise ValueError("a fixed radio takes a profile or rates, not both; leave one out")
        for key, share in (("uplink_share", self.uplink_share), ("downlink_share", self.downlink_share)):
            if share is not None:
                raise Misfit(f"{key}={share:g} is for given rates, and the profile has its own; leave it out", key)
        if self.profile not in profiles():
            raise Misfit(
                f"no radio profile is called {self.profile!r}{hint('profiles', self.profile, profiles())} "
                f"(known: {', '.join(profiles())})",
                "profile",
            )

    @property
    def usual_discipline(self) -> str:
        """The profile's; without one, one message after the other."""
        return "serial" if self.profile is None else technologies()[self.profile].discipline

    @property
    def device_duplex(self) -> Duplex:
        """Half where the profile is of half-duplex devices."""
        return "half" if self.profile is not None and technologies()[self.profile].duplex == "half" else "full"

    @property
    def divides_time(self) -> bool:
        """Whether the profile is one of TDD."""
        return self.profile is not None and technologies()[self.profile].duplex == "tdd"

    def rates_of(self, paths: Sequence[RadioPath], time_s: float = 0.0) -> RatesOfMany:
        """The same for every device, for ever."""
        own, many = self._rates, len(paths)
        return RatesOfMany(
            np.full(many, own.uplink_bps),
            np.full(many, own.downlink_bps),
            np.full(many, own.uplink_share),
            np.full(many, own.downlink_share),
        )

    def rates(self, path: RadioPath) -> Rates:
        """The same for every device, for ever."""
        return self._rates

    @property
    def _rates(self) -> Rates:
        if self.profile is not None:
            return profiles()[self.profile]
        assert self.uplink_bps is not None and self.downlink_bps is not None
        return Rates(self.uplink_bps, self.downlink_bps, self.uplink_share or 1.0, self.downlink_share or 1.0)
