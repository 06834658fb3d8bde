"""Rates from signal-to-noise ratios, r = B log2(1 + SNR), as in FedGS, or attenuated and capped as in TR 36.942.

Leaves out the cell's other devices: a rate is what one device gets alone on the air, and it can use all of the carrier.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Literal

from fedsim.radio.budget import LinkBudget
from fedsim.radio.carrier import Carrier
from fedsim.radio.settings import PartialCoverage, Rates, SensorSite, UpDown
from fedsim.radio.snr import SnrSettings
from fedsim.settings import OneOf

__all__ = ["Shannon"]


class Shannon(Carrier, PartialCoverage):
    """Rates from signal-to-noise ratios: Shannon's bound, or its attenuated and capped form for LTE and 5G."""

    name: Literal["shannon"] = "shannon"
    snr: Annotated[SnrSettings, OneOf("snrs")]
    """Where a device's signal-to-noise ratios come from."""

    def rates(self, site: SensorSite) -> Rates:
        """With the first draw of shadowing."""
        _, loss_db = next(self.snr.losses_db(site))
        return self._rates(self.snr.median_db(site, self.bandwidths_hz), loss_db)

    def changes(self, site: SensorSite) -> Iterator[tuple[float, Rates]]:
        """With every later draw of shadowing."""
        median_db = self.snr.median_db(site, self.bandwidths_hz)
        for time_s, loss_db in islice(self.snr.losses_db(site), 1, None):
            yield time_s, self._rates(median_db, loss_db)

    def budgets(self, site: SensorSite) -> UpDown[LinkBudget]:
        """How the device comes to its rates at time zero."""
        _, loss_db = next(self.snr.losses_db(site))
        median_db, power = self.snr.median_db(site, self.bandwidths_hz), self.snr.power(site, self.bandwidths_hz)

        def budget(way: Literal[0, 1]) -> LinkBudget:
            snr_db, bandwidth_hz = median_db[way] - loss_db, self.bandwidths_hz[way]
            bps_per_hz = self.efficiency[way].bps_per_hz(snr_db)
            return LinkBudget(
                power=power and power[way],
                shadowing_db=loss_db,
                snr_db=snr_db,
                bandwidth_hz=bandwidth_hz,
                bps_per_hz=bps_per_hz,
                rate_bps=bandwidth_hz * bps_per_hz,
            )

        return UpDown(budget(0), budget(1))

    def why_no_coverage(self, site: SensorSite) -> str | None:
        """Of a direction whose ratio stays below the profile's minimum; one redraw in a million does not count."""
        best_rates = self._rates(self.snr.median_db(site, self.bandwidths_hz), self.snr.least_loss_db(site))
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

    def _rates(self, median_db: UpDown[float], loss_db: float) -> Rates:
        return self.rates_at(UpDown(median_db.uplink - loss_db, median_db.downlink - loss_db))
