"""What radios have in common whose rates follow from signal-to-noise ratios.

A source of ratios (`fedsim.radio.snr`) tells a median for each device and direction, and shadowing around it; the radio
turns ratios into rates. When shadowing is drawn again, all devices have new rates in that instant. Below its lowest
entry a radio has no rate: messages wait for the next draw, and are lost when there is none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.radio.budget import LinkBudget, PowerBudget
from fedsim.radio.settings import PartialCoverage, RadioPath, Rates, RatesOfMany, UpDown
from fedsim.radio.snr import SnrSettings
from fedsim.settings import OneOf

__all__ = ["RatiosOfMany", "SnrRadio"]

RatiosOfMany = UpDown[NDArray[np.float64]]
"""Signal-to-noise ratios of many devices, in decibels."""


class SnrRadio(PartialCoverage):
    """A radio whose rates follow from signal-to-noise ratios."""

    snr: Annotated[SnrSettings, OneOf("snrs")]
    """Where a device's signal-to-noise ratios come from."""

    @property
    @abstractmethod
    def bandwidths_hz(self) -> UpDown[float]:
        """The bandwidth of each direction that the ratios are for."""

    @property
    @abstractmethod
    def least_snr_db(self) -> UpDown[float]:
        """The ratio below which there is no coverage."""

    @property
    def technology(self) -> str:
        """What messages call it."""
        return self.name

    @abstractmethod
    def rates_at_all(self, snr_db: RatiosOfMany, before: RatesOfMany | None = None) -> RatesOfMany:
        """The rates at these ratios; *before* are those that the same devices had until now."""

    @abstractmethod
    def budget_at(
        self, way: Literal[0, 1], power: PowerBudget | None, loss_db: float, snr_db: UpDown[float]
    ) -> LinkBudget:
        """How one direction (0: uplink) comes to its rate, at ratios that contain *loss_db* of shadowing."""

    @property
    def usual_discipline(self) -> str:
        """Base stations whose rates follow from such ratios share the air out."""
        return "fair"

    def rates(self, path: RadioPath) -> Rates:
        """With the first draw of shadowing."""
        [rates] = SnrRadio.rates_of(self, [path])
        return rates

    def rates_of(self, paths: Sequence[RadioPath], time_s: float = 0.0) -> RatesOfMany:
        """With the last draw of shadowing until then."""
        told = takewhile(lambda change: change[0] <= time_s, self._told(paths))
        first = next(told)
        if time_s == 0:
            return first[1]
        *_, (_, rates) = first, *told
        return rates

    def changes(self, path: RadioPath) -> Iterator[tuple[float, Rates]]:
        """With every later draw of shadowing."""
        together = SnrRadio.changes_together(self, [path])
        return ((time_s, rates) for time_s, of_one in together for rates in of_one)

    def changes_together(self, paths: Sequence[RadioPath]) -> Iterator[tuple[float, RatesOfMany]]:
        """With every later draw of shadowing, which all devices have in the same instants."""
        return islice(self._told(paths), 1, None)

    def _told(self, paths: Sequence[RadioPath]) -> Iterator[tuple[float, RatesOfMany]]:
        """The rates and when they begin, the first at 0."""
        median_db = self.snr.medians_db(paths, self.bandwidths_hz)
        rates = None
        for time_s, loss_db in self.snr.losses_db(paths):
            rates = self.rates_at_all(UpDown(median_db.uplink - loss_db, median_db.downlink - loss_db), rates)
            yield time_s, rates

    def budgets(self, path: RadioPath) -> UpDown[LinkBudget]:
        """How the device comes to its rates at time zero."""
        [both] = self.budgets_of([path])
        return both

    def budgets_of(self, paths: Sequence[RadioPath]) -> Iterator[UpDown[LinkBudget]]:
        """The same of many devices, in their order."""
        _, losses_db = next(self.snr.losses_db(paths))
        medians_db = self.snr.medians_db(paths, self.bandwidths_hz)
        powers = self.snr.powers(paths, self.bandwidths_hz)
        for loss_db, power, *median_db in zip(losses_db.tolist(), powers, *medians_db, strict=True):
            snr_db = UpDown(*(float(ratio) - loss_db for ratio in median_db))
            yield UpDown(
                self.budget_at(0, power and power.uplink, loss_db, snr_db),
                self.budget_at(1, power and power.downlink, loss_db, snr_db),
            )

    def snr_of(self, paths: Sequence[RadioPath]) -> RatiosOfMany:
        """The ratios of many devices at time zero, shadowing included."""
        _, loss_db = next(self.snr.losses_db(paths))
        median_db = self.snr.medians_db(paths, self.bandwidths_hz)
        return UpDown(median_db.uplink - loss_db, median_db.downlink - loss_db)

    def why_no_coverage(self, path: RadioPath) -> str | None:
        """Of a direction whose ratio stays below the lowest entry; one redraw in a million does not count."""
        loss_db = self.snr.least_loss_db(path)
        for way, direction in ((0, "uplink"), (1, "downlink")):
            median_db = float(self.snr.medians_db([path], self.bandwidths_hz)[way][0])
            if median_db - loss_db < self.least_snr_db[way]:
                return self._why(path, direction, median_db, loss_db, self.least_snr_db[way])
        return None

    def _why(self, path: RadioPath, direction: str, median_db: float, loss_db: float, needed_db: float) -> str:
        [power] = self.snr.powers([path], self.bandwidths_hz)
        over = "" if path.distance_m is None else f" over {path.distance_m:.1f} m"
        origin = f" (path loss {power.uplink.path_loss_db:.1f} dB{over})" if power else ""
        best = f" and at best {median_db - loss_db:.2f} dB with shadowing" if self.snr.shadowing else ""
        return (
            f"sensor {path.sensor!r} has no coverage in the {direction}: its SNR is {median_db:.2f} dB{origin}{best}, "
            f"and {self.technology} needs {needed_db:g} dB; move it, raise the power, or leave such sensors out with "
            "out_of_coverage: exclude"
        )
