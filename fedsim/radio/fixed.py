"""Fixed rates: the same for every device of a cell, given as numbers or as the nominal rates of a technology.

Ignores distance, fading and interference; nominal rates are what one device gets alone on the air.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import Literal

from fedsim.errors import Misfit, nearest
from fedsim.radio.settings import RadioSettings, Rates, SensorSite
from fedsim.settings import Fraction, PositiveOrInfinite, key_rule

__all__ = ["Fixed", "profiles"]


@cache
def profiles() -> dict[str, Rates]:
    """The nominal rates by technology; ``fedsim/radio/profiles.csv`` gives the source of each.

    >>> profiles()["nb_iot_nb2"]
    Rates(uplink_bps=158500.0, downlink_bps=120800.0, uplink_share=0.625, downlink_share=0.5)
    """
    with (resources.files("fedsim.radio") / "profiles.csv").open(encoding="utf-8") as file:
        return {
            row["name"]: Rates(
                float(row["uplink_bps"]),
                float(row["downlink_bps"]),
                float(row["uplink_share"]),
                float(row["downlink_share"]),
            )
            for row in csv.DictReader(file)
        }


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
    """Largest share of the cell's carrier that one device can use alone at this rate; left out, all of it."""
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
                f"no radio profile is called {self.profile!r}{nearest(self.profile, profiles())} "
                f"(known: {', '.join(profiles())})",
                "profile",
            )

    def rates(self, site: SensorSite) -> Rates:
        """The same for every device, for ever."""
        if self.profile is not None:
            return profiles()[self.profile]
        assert self.uplink_bps is not None and self.downlink_bps is not None
        return Rates(self.uplink_bps, self.downlink_bps, self.uplink_share or 1.0, self.downlink_share or 1.0)
