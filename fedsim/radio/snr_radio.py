"""What radios have in common whose rates follow from signal-to-noise ratios.

A source of ratios (`fedsim.radio.snr`) tells a median for each device and direction, and shadowing around it; the radio
turns ratios into rates. When shadowing is drawn again, or other cells have another load, all devices have new rates in
that instant. Below its lowest entry a radio has no rate: messages wait for the next change, and are lost when there is
none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import Annotated, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import Misfit
from fedsim.radio.budget import LinkBudget, PowerBudget
from fedsim.radio.settings import PartialCoverage, RadioPath, Rates, RatesOfMany, UpDown
from fedsim.radio.snr import FromLinkBudget, SnrSettings
from fedsim.settings import OneOf

__all__ = ["RatiosOfMany", "SnrRadio"]

One = TypeVar("One")
Other = TypeVar("Other")
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

    def rates_under(
        self, snr_db: RatiosOfMany, margin_db: RatiosOfMany, before: RatesOfMany | None = None
    ) -> RatesOfMany:
        """The rates where interference of other cells takes *margin_db* off these ratios."""
        return self.rates_at_all(_less(snr_db, margin_db), before)

    def uplink_density(self, rates: RatesOfMany) -> NDArray[np.float64]:
        """How much denser each device sends, at these rates, than if it spread its power over all of the carrier."""
        return np.ones(len(rates))

    @abstractmethod
    def budget_at(
        self, way: Literal[0, 1], power: PowerBudget | None, loss_db: float, snr_db: UpDown[float]
    ) -> LinkBudget:
        """How one direction (0: uplink) comes to its rate, at ratios that contain *loss_db* of shadowing."""

    def budget_under(
        self,
        way: Literal[0, 1],
        power: PowerBudget | None,
        loss_db: float,
        snr_db: UpDown[float],
        margin_db: UpDown[float],
    ) -> LinkBudget:
        """The same where interference of other cells takes *margin_db* off these ratios, which *power* contains."""
        ratios_db = UpDown(snr_db.uplink - margin_db.uplink, snr_db.downlink - margin_db.downlink)
        return self.budget_at(way, power, loss_db, ratios_db)

    @property
    def usual_discipline(self) -> str:
        """Base stations whose rates follow from such ratios share the air out."""
        return "fair"

    def rates(self, path: RadioPath) -> Rates:
        """With the first draw of shadowing, and the first loads of other cells."""
        [rates] = SnrRadio.rates_of(self, [path])
        return rates

    def rates_of(self, paths: Sequence[RadioPath], time_s: float = 0.0) -> RatesOfMany:
        """With the last draw of shadowing and the last loads until then."""
        told = takewhile(lambda change: change[0] <= time_s, self._told(paths))
        first = next(told)
        if time_s == 0:
            return first[1]
        *_, (_, rates) = first, *told
        return rates

    def changes(self, path: RadioPath) -> Iterator[tuple[float, Rates]]:
        """With every later draw of shadowing, and all later loads."""
        together = SnrRadio.changes_together(self, [path])
        return ((time_s, rates) for time_s, of_one in together for rates in of_one)

    def changes_together(self, paths: Sequence[RadioPath]) -> Iterator[tuple[float, RatesOfMany]]:
        """With every later draw of shadowing and all later loads, which all devices have in the same instants."""
        return islice(self._told(paths), 1, None)

    def _told(self, paths: Sequence[RadioPath]) -> Iterator[tuple[float, RatesOfMany]]:
        """The rates and when they begin, the first at 0."""
        median_db = self.snr.medians_db(paths, self.bandwidths_hz)
        rates = None
        for time_s, loss_db, margin_db in _in_step(self.snr.losses_db(paths), self.margins_db(paths)):
            snr_db = UpDown(median_db.uplink - loss_db, median_db.downlink - loss_db)
            rates = self.rates_under(snr_db, margin_db, rates)
            yield time_s, rates

    def margins_db(self, paths: Sequence[RadioPath]) -> Iterator[tuple[float, RatiosOfMany]]:
        """How far other cells lift the noise, beyond given margins, and from when on, the first at 0.

        Raises `UserError` when it is not known who else is on the air.
        """
        snr: object = self.snr
        if not isinstance(snr, FromLinkBudget) or snr.interference is None:
            return iter([(0.0, UpDown(np.zeros(len(paths)), np.zeros(len(paths))))])
        around = paths[0].around
        if around is None:
            raise Misfit(
                f"what interference is for sensor {paths[0].sensor!r} depends on all cells around it, and its path "
                "was made without a network; take the paths of a network, or leave interference out",
                *("snr", "interference"),
            )
        return around(self, paths)

    def budgets(self, path: RadioPath) -> UpDown[LinkBudget]:
        """How the device comes to its rates at time zero."""
        [both] = self.budgets_of([path])
        return both

    def budgets_of(self, paths: Sequence[RadioPath]) -> Iterator[UpDown[LinkBudget]]:
        """The same of many devices, in their order."""
        _, losses_db = next(self.snr.losses_db(paths))
        _, margins_db = next(self.margins_db(paths))
        medians_db = self.snr.medians_db(paths, self.bandwidths_hz)
        powers = self.snr.powers(paths, self.bandwidths_hz)
        margins = (UpDown(*both) for both in zip(*(way.tolist() for way in margins_db), strict=True))
        for loss_db, power, margin_db, *median_db in zip(losses_db.tolist(), powers, margins, *medians_db, strict=True):
            snr_db = UpDown(*(float(ratio) - loss_db for ratio in median_db))
            yield UpDown(
                self.budget_under(0, power and _with(power.uplink, margin_db.uplink), loss_db, snr_db, margin_db),
                self.budget_under(1, power and _with(power.downlink, margin_db.downlink), loss_db, snr_db, margin_db),
            )

    def snr_of(self, paths: Sequence[RadioPath]) -> RatiosOfMany:
        """The ratios of many devices at time zero, shadowing included."""
        _, loss_db = next(self.snr.losses_db(paths))
        _, margin_db = next(self.margins_db(paths))
        median_db = self.snr.medians_db(paths, self.bandwidths_hz)
        return _less(UpDown(median_db.uplink - loss_db, median_db.downlink - loss_db), margin_db)

    def why_no_coverage(self, path: RadioPath) -> str | None:
        """Of a direction whose ratio is below the lowest entry at all loads; one redraw in a million does not count."""
        loss_db, reasons = self.snr.least_loss_db(path), []
        alone_db = self.snr.medians_db([path], self.bandwidths_hz)
        for _, margin_db in self.margins_db([path]):
            medians_db = _less(alone_db, margin_db)
            short = [way for way in (0, 1) if float(medians_db[way][0]) - loss_db < self.least_snr_db[way]]
            if not short:
                return None
            reasons.append((short[0], float(medians_db[short[0]][0]), float(margin_db[short[0]][0])))
        way, median_db, of_others_db = reasons[0]
        return self._why(path, way, median_db, loss_db, of_others_db)

    def _why(self, path: RadioPath, way: int, median_db: float, loss_db: float, of_others_db: float) -> str:
        direction, needed_db = ("uplink", "downlink")[way], self.least_snr_db[way]
        [power] = self.snr.powers([path], self.bandwidths_hz)
        over = "" if path.distance_m is None else f" over {path.distance_m:.1f} m"
        lost = (
            {}
            if power is None
            else {
                "walls": power.uplink.penetration_loss_db,
                "extra loss": power.uplink.extra_loss_db,
                "interference of other cells": of_others_db,
            }
        )
        more = "".join(f", {what} {decibels:.1f} dB" for what, decibels in lost.items() if decibels)
        origin = f" (path loss {power.uplink.path_loss_db:.1f} dB{over}{more})" if power else ""
        shadowing = self.snr.shadowing
        how = "" if shadowing is None else "at best " if shadowing.redraw_every_s is not None else ""
        best = f" and {how}{median_db - loss_db:.2f} dB with shadowing" if shadowing else ""
        return (
            f"sensor {path.sensor!r} has no coverage in the {direction}: its SNR is {median_db:.2f} dB{origin}{best}, "
            f"and {self.technology} needs {needed_db:g} dB; move it, raise the power, or leave such sensors out with "
            "out_of_coverage: exclude"
        )


def _less(snr_db: RatiosOfMany, margin_db: RatiosOfMany) -> RatiosOfMany:
    return UpDown(snr_db.uplink - margin_db.uplink, snr_db.downlink - margin_db.downlink)


def _with(power: PowerBudget, margin_db: float) -> PowerBudget:
    """What other cells do, in addition to the given margin."""
    if margin_db == 0:
        return power
    return replace(power, interference_margin_db=power.interference_margin_db + margin_db)


def _in_step(
    one: Iterator[tuple[float, One]], other: Iterator[tuple[float, Other]]
) -> Iterator[tuple[float, One, Other]]:
    """Two things that change, each in instants of its own from 0 on: both, in every instant in which either changes.

    >>> list(_in_step(iter([(0.0, "a"), (2.0, "b")]), iter([(0.0, 1), (1.0, 2), (2.0, 3)])))
    [(0.0, 'a', 1), (1.0, 'a', 2), (2.0, 'b', 3)]
    """
    (time_s, first), (_, second) = next(one), next(other)
    yield time_s, first, second
    coming, others = next(one, None), next(other, None)
    while coming or others:
        time_s = min(change[0] for change in (coming, others) if change)
        due, other_due = coming and coming[0] == time_s, others and others[0] == time_s
        first = coming[1] if coming and due else first
        second = others[1] if others and other_due else second
        yield time_s, first, second
        coming = next(one, None) if due else coming
        others = next(other, None) if other_due else others
