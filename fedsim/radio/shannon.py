"""Rates from signal-to-noise ratios, r = B log2(1 + SNR), as in FedGS, or attenuated and capped as in TR 36.942.

A carrier turns a ratio into a rate: bandwidth times what a technology carries on a hertz. Leaves out overhead for
control and access: give the bandwidth that carries data (50 resource blocks of 180 kHz are 9 MHz of a 10 MHz carrier),
or less. Leaves out the cell's other devices: a rate is what one device gets alone on the air, and it can use all of the
carrier.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import islice
from typing import Annotated, Literal

from fedsim.errors import Misfit
from fedsim.radio.budget import LinkBudget
from fedsim.radio.settings import PartialCoverage, Rates, SensorSite, UpDown
from fedsim.radio.snr import SnrSettings
from fedsim.settings import OneOf, Positive, Settings, key_rule

__all__ = ["Carrier", "Shannon", "SpectralEfficiency", "efficiencies", "shannon_bps_per_hz"]


def shannon_bps_per_hz(snr_db: float) -> float:
    """log2(1 + SNR), for any ratio in decibels without overflow.

    >>> round(shannon_bps_per_hz(0.0), 12), round(shannon_bps_per_hz(10.0), 4)
    (1.0, 3.4594)
    """
    exponent = snr_db / 10 * math.log2(10)  # SNR = 2 ** exponent
    return max(exponent, 0.0) + math.log1p(2.0 ** -abs(exponent)) / math.log(2)


@dataclass(frozen=True, slots=True)
class SpectralEfficiency:
    """How many bits one technology carries in a second on a hertz, in one direction.

        0                               below snr_min
        min(alpha log2(1 + SNR), most)  from there on

    Source: TR 36.942 annex A. With alpha 1 and no ends it is the bound itself: C. E. Shannon, *Communication in the
    presence of noise* (Proc. IRE 37, 1949). Leaves out the steps between modulation and coding schemes, block errors,
    fast fading and several antennas, as far as 3GPP's fits of alpha and the ends do not stand for them.
    """

    alpha: float
    """Part of Shannon's bound that is reached."""
    snr_min_db: float
    """Below it there is no coverage."""
    most_bps_per_hz: float
    """What the densest modulation carries."""

    def bps_per_hz(self, snr_db: float) -> float:
        """Bits per second and hertz at a signal-to-noise ratio."""
        if snr_db < self.snr_min_db:
            return 0.0
        return min(self.alpha * shannon_bps_per_hz(snr_db), self.most_bps_per_hz)


@cache
def efficiencies() -> dict[str, UpDown[SpectralEfficiency]]:
    """Profile -> both directions; ``fedsim/radio/efficiency.csv`` gives the source of each.

    >>> round(efficiencies()["lte_36942"].downlink.bps_per_hz(10.0), 3)
    2.076
    """
    found: dict[str, dict[str, SpectralEfficiency]] = {}
    with (resources.files("fedsim.radio") / "efficiency.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["profile"], {})[row["direction"]] = SpectralEfficiency(
                float(row["alpha"]), float(row["snr_min_db"]), float(row["most_bps_per_hz"])
            )
    return {profile: UpDown(**directions) for profile, directions in found.items()}


class Carrier(Settings):
    """What signal-to-noise ratios are turned into rates with: rate = bandwidth x bits per second and hertz.

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

    @key_rule
    def _bandwidth_once(self) -> None:
        given = self.uplink_bandwidth_hz is not None, self.downlink_bandwidth_hz is not None
        if self.bandwidth_hz is not None and any(given):
            key = "uplink_bandwidth_hz" if given[0] else "downlink_bandwidth_hz"
            raise Misfit(f"bandwidth_hz={self.bandwidth_hz:g} is for both directions already; leave one out", key)
        if self.bandwidth_hz is None and not all(given):
            raise ValueError("needs bandwidth_hz, or both uplink_bandwidth_hz and downlink_bandwidth_hz")

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

    def rates_at(self, snr_db: UpDown[float]) -> Rates:
        """The rates at these signal-to-noise ratios; one device can use all of the carrier."""
        uplink, downlink = self.efficiency
        uplink_hz, downlink_hz = self.bandwidths_hz
        return Rates(uplink_hz * uplink.bps_per_hz(snr_db.uplink), downlink_hz * downlink.bps_per_hz(snr_db.downlink))


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
