"""Rates from signal-to-noise ratios, r = B log2(1 + SNR), as in FedGS, or attenuated and capped as in TR 36.942.

Ratios come from a source of ratios (`fedsim.radio.snr`), and a carrier (`fedsim.radio.carrier`) turns them into rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.radio.budget import LinkBudget, PowerBudget
from fedsim.radio.carrier import Carrier
from fedsim.radio.settings import Duplex, PartialCoverage, Rates, RatesOfMany, SensorSite, UpDown
from fedsim.radio.snr import SnrSettings
from fedsim.settings import OneOf

__all__ = ["Shannon"]


class Shannon(Carrier, PartialCoverage):
    """Rates from signal-to-noise ratios: Shannon's bound, or its attenuated and capped form for LTE and 5G."""

    name: Literal["shannon"] = "shannon"
    snr: Annotated[SnrSettings, OneOf("snrs")]
    """Where a device's signal-to-noise ratios come from."""

    @property
    def usual_discipline(self) -> str:
        """Base stations whose rates follow from such ratios share the air out."""
        return "fair"

    def rates(self, site: SensorSite) -> Rates:
        """With the first draw of shadowing."""
        [rates] = Shannon.rates_of(self, [site])
        return rates

    def rates_of(self, sites: Sequence[SensorSite]) -> RatesOfMany:
        """With the first draw of shadowing for each."""
        _, loss_db = next(self.snr.losses_db(sites))
        return self._rates(self.snr.medians_db(sites, self.bandwidths_hz), loss_db)

    def changes(self, site: SensorSite) -> Iterator[tuple[float, Rates]]:
        """With every later draw of shadowing."""
        together = Shannon.changes_together(self, [site])
        return ((time_s, rates) for time_s, of_one in together for rates in of_one)

    def changes_together(self, sites: Sequence[SensorSite]) -> Iterator[tuple[float, RatesOfMany]]:
        """With every later draw of shadowing, which all devices have in the same instants."""
        median_db = self.snr.medians_db(sites, self.bandwidths_hz)
        later = islice(self.snr.losses_db(sites), 1, None)
        return ((time_s, self._rates(median_db, loss_db)) for time_s, loss_db in later)

    def uncut_of(self, sites: Sequence[SensorSite]) -> RatesOfMany:
        """The rates at time zero that devices would have without the maximum of their category."""
        _, loss_db = next(self.snr.losses_db(sites))
        return self._rates(self.snr.medians_db(sites, self.bandwidths_hz), loss_db, cut=False)

    @property
    def device_duplex(self) -> Duplex:
        """The category's."""
        return self.category_duplex

    @property
    def divides_time(self) -> bool:
        """With a pattern of turns."""
        return self.tdd is not None

    def budgets(self, site: SensorSite) -> UpDown[LinkBudget]:
        """How the device comes to its rates at time zero."""
        [both] = self.budgets_of([site])
        return both

    def budgets_of(self, sites: Sequence[SensorSite]) -> Iterator[UpDown[LinkBudget]]:
        """The same of many devices, in their order."""
        _, losses_db = next(self.snr.losses_db(sites))
        for site, loss_db in zip(sites, losses_db.tolist(), strict=True):
            median_db, power = self.snr.median_db(site, self.bandwidths_hz), self.snr.power(site, self.bandwidths_hz)
            yield UpDown(
                self._budget(0, power and power.uplink, median_db.uplink, loss_db),
                self._budget(1, power and power.downlink, median_db.downlink, loss_db),
            )

    def _budget(self, way: Literal[0, 1], power: PowerBudget | None, median_db: float, loss_db: float) -> LinkBudget:
        return LinkBudget(
            power=power,
            shadowing_db=loss_db,
            snr_db=median_db - loss_db,
            bandwidth_hz=self.bandwidths_hz[way],
            bps_per_hz=self.efficiency[way].bps_per_hz(median_db - loss_db),
            time_share=self.time_shares[way] if self.tdd else None,
            duty=self.duties[way] if self.category else None,
            most_bps=self.most_bps[way],
        )

    def why_no_coverage(self, site: SensorSite) -> str | None:
        """Of a direction whose ratio stays below the profile's minimum; one redraw in a million does not count."""
        median_db, loss_db = self.snr.median_db(site, self.bandwidths_hz), self.snr.least_loss_db(site)
        best_rates = self.rates_at(UpDown(median_db.uplink - loss_db, median_db.downlink - loss_db))
        if best_rates.uplink_bps == 0.0:
            return self._why(site, "uplink")
        return self._why(site, "downlink") if best_rates.downlink_bps == 0.0 else None

    def _why(self, site: SensorSite, direction: Literal["uplink", "downlink"]) -> str:
        power = self.snr.power(site, self.bandwidths_hz)
        median_db = getattr(self.snr.median_db(site, self.bandwidths_hz), direction)
        loss_db = self.snr.least_loss_db(site)
        needed_db = getattr(self.efficiency, direction).snr_min_db
        origin = f" (path loss {power.uplink.path_loss_db:.1f} dB over {site.distance_m:.1f} m)" if power else ""
        best = f" and at best {median_db - loss_db:.2f} dB with shadowing" if self.snr.shadowing else ""
        return (
            f"sensor {site.sensor!r} has no coverage in the {direction}: its SNR is {median_db:.2f} dB{origin}{best}, "
            f"and {self.profile} needs {needed_db:g} dB; move it, raise the power, or leave such sensors out with "
            "out_of_coverage: exclude"
        )

    def _rates(
        self, median_db: UpDown[NDArray[np.float64]], loss_db: NDArray[np.float64], *, cut: bool = True
    ) -> RatesOfMany:
        return self.rates_at_all(UpDown(median_db.uplink - loss_db, median_db.downlink - loss_db), cut=cut)
