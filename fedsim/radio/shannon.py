"""Rates from signal-to-noise ratios, r = B log2(1 + SNR), as in FedGS, or attenuated and capped as in TR 36.942.

Ratios come from a source of ratios (`fedsim.radio.snr`), and a carrier (`fedsim.radio.carrier`) turns them into rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fedsim.radio.budget import LinkBudget, PowerBudget, Term
from fedsim.radio.carrier import Carrier
from fedsim.radio.settings import Duplex, RadioPath, RatesOfMany, UpDown
from fedsim.radio.snr_radio import RatiosOfMany, SnrRadio

__all__ = ["Shannon"]


class Shannon(Carrier, SnrRadio):
    """Rates from signal-to-noise ratios: Shannon's bound, or its attenuated and capped form for LTE and 5G."""

    name: Literal["shannon"] = "shannon"

    @property
    def least_snr_db(self) -> UpDown[float]:
        """The profile's."""
        return UpDown(self.efficiency.uplink.snr_min_db, self.efficiency.downlink.snr_min_db)

    @property
    def technology(self) -> str:
        """The profile."""
        return self.profile

    def rates_at_all(self, snr_db: RatiosOfMany, before: RatesOfMany | None = None, *, cut: bool = True) -> RatesOfMany:
        """The rates at these ratios, whatever they were before. Without *cut* there is no maximum."""
        return self.carried(snr_db, cut=cut)

    def uncut_of(self, paths: Sequence[RadioPath]) -> RatesOfMany:
        """The rates at time zero that devices would have without the maximum of their category."""
        return self.carried(self.snr_of(paths), cut=False)

    @property
    def device_duplex(self) -> Duplex:
        """The category's."""
        return self.category_duplex

    def budget_at(
        self, way: Literal[0, 1], power: PowerBudget | None, loss_db: float, snr_db: UpDown[float]
    ) -> LinkBudget:
        """With the profile's spectral efficiency."""
        bps_per_hz = self.efficiency[way].bps_per_hz(snr_db[way])
        steps: list[Term] = [("spectral efficiency", bps_per_hz, "bit/s/Hz")]
        uncut_bps = self.bandwidths_hz[way] * bps_per_hz * self.time_shares[way] * self.duties[way]
        if self.tdd:
            steps.append(("share of time", self.time_shares[way], ""))
        if self.category:
            steps += [
                ("share of the carrier", self.duties[way], ""),
                ("rate without a maximum", uncut_bps, "bit/s"),
                ("category maximum", self.most_bps[way], "bit/s"),
            ]
        return LinkBudget(
            power=power,
            shadowing_db=loss_db,
            snr_db=snr_db[way],
            bandwidth_hz=self.bandwidths_hz[way],
            steps=steps,
            rate_bps=min(uncut_bps, self.most_bps[way]),
        )
