"""A source of signal-to-noise ratios: a median for each device and direction, and shadowing around it.

Shadowing is what walls and machines take away or let through, a normal number of decibels that is new now and then:

    X_0 = sigma W_0,   X_n = a X_(n-1) + sigma sqrt(1 - a^2) W_n,   a = exp(-redraw / correlation)

with independent standard normal W: every X has the standard deviation sigma, and values t seconds apart have the
correlation exp(-t / correlation). M. Gudmundson found this law over distance (*Correlation model for shadow fading in
mobile radio systems*, Electronics Letters 27, 1991); here devices stand and the surroundings change, so it is over time
(at a speed v, correlation_s is his distance divided by v). Leaves out fast fading, that neighbours share shadows, and
interference that comes and goes: it is a margin, if anything.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from itertools import count
from typing import Annotated, Self

from annotated_types import Interval
from pydantic import model_validator

from fedsim.errors import Misfit
from fedsim.radio.budget import PowerBudget
from fedsim.radio.settings import SensorSite, UpDown
from fedsim.settings import Component, Positive, Settings

__all__ = ["Decibels", "Shadowing", "SnrSettings"]

Decibels = Annotated[float, Interval(ge=-300, le=300)]
"""More is no radio."""
UNLIKELY = 4.753424  # standard deviations that a normal number exceeds once in a million: scipy.stats.norm.isf(1e-6)


class Shadowing(Settings):
    """Log-normal shadowing: a normal number of decibels for each device, the same in both directions."""

    sigma_db: Positive
    """Standard deviation."""
    redraw_every_s: Annotated[float, Interval(ge=1e-3, le=1e12)] | None = None
    """Seconds between two draws for one device; left out, one draw is for ever."""
    correlation_s: Positive | None = None
    """Seconds after which a draw's correlation with later ones has fallen to 1/e; left out, draws are independent."""

    @model_validator(mode="after")
    def _correlation_of_redraws(self) -> Self:
        if self.correlation_s is not None and self.redraw_every_s is None:
            raise Misfit(
                f"correlation_s={self.correlation_s:g} needs redraw_every_s: one draw that is for ever has no others "
                "to go with; give redraw_every_s, or leave correlation_s out",
                "correlation_s",
            )
        return self

    def losses_db(self, site: SensorSite) -> Iterator[tuple[float, float]]:
        """The losses of a device: (seconds from which it holds, decibels), the first at 0; endless with redraws.

        The n-th draw is a function of the seed, the device and n.
        """
        rng = site.streams("radio/shadowing", site.index).generator()
        loss_db = self.sigma_db * rng.standard_normal()
        yield 0.0, loss_db
        if self.redraw_every_s is None:
            return
        kept, fresh_db = 0.0, self.sigma_db
        if self.correlation_s is not None:
            blocks = self.redraw_every_s / self.correlation_s
            kept, fresh_db = math.exp(-blocks), self.sigma_db * math.sqrt(-math.expm1(-2 * blocks))
        for number in count(1):
            loss_db = kept * loss_db + fresh_db * rng.standard_normal()
            yield number * self.redraw_every_s, loss_db

    def least_db(self, site: SensorSite) -> float:
        """The least loss to count on: the only draw, or what one draw in a million falls below."""
        if self.redraw_every_s is None:
            return next(self.losses_db(site))[1]
        return -UNLIKELY * self.sigma_db


class SnrSettings(Component):
    """What is registered under "snrs"."""

    shadowing: Shadowing | None = None
    """What is drawn around the median for each device; nothing when left out."""

    @abstractmethod
    def median_db(self, site: SensorSite, bandwidths_hz: UpDown[float]) -> UpDown[float]:
        """The device's ratios without shadowing. Raises `UserError` when they cannot be known."""

    def power(self, site: SensorSite, bandwidths_hz: UpDown[float]) -> UpDown[PowerBudget] | None:
        """What the median consists of; None where it is just given."""
        return None

    def losses_db(self, site: SensorSite) -> Iterator[tuple[float, float]]:
        """The device's losses by shadowing: (seconds from which it holds, decibels), the first at 0; may be endless."""
        return self.shadowing.losses_db(site) if self.shadowing else iter([(0.0, 0.0)])

    def least_loss_db(self, site: SensorSite) -> float:
        """The least loss by shadowing that the device can count on."""
        return self.shadowing.least_db(site) if self.shadowing else 0.0
