"""What radios have in common that look up a row of a table for each signal-to-noise ratio.

The rows of the tables are good for a tenth of block errors (the target of link adaptation in LTE, NB-IoT and 5G: TS
36.213 clause 7.2.3, TS 38.214 clause 5.2.2.1). A block with an error is sent again, by hybrid ARQ. That is in the rate
as its mean, or drawn for each message, or left out, as ``block_errors`` says. At the top of a table true errors are
rarer, which is left out.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.radio.budget import LinkBudget, PowerBudget, Term
from fedsim.radio.carrier import TddPattern
from fedsim.radio.rate_table import RateTable, Row
from fedsim.radio.settings import RatesOfMany, UpDown
from fedsim.radio.snr_radio import RatiosOfMany, SnrRadio

__all__ = ["BLOCK_ERRORS", "TableRadio"]

BLOCK_ERRORS = 0.1
"""The part of the transport blocks that link adaptation lets fail at first."""


class TableRadio(SnrRadio):
    """A radio with a table for each direction."""

    block_errors: Literal["mean", "drawn", "none"] = "mean"
    """Of ten transport blocks, one fails and is sent again. mean: each rate is lower by that tenth; drawn: for each
    message the number of such blocks is drawn; none: no block fails."""

    @property
    @abstractmethod
    def tables(self) -> UpDown[RateTable]:
        """What can be sent from which ratio on, over `bandwidths_hz`; rates contain `kept` already."""

    @property
    def kept(self) -> float:
        """The part of each rate that is left after the mean of block errors."""
        return 1.0 - BLOCK_ERRORS if self.block_errors == "mean" else 1.0

    @property
    def drawn_errors(self) -> float:
        """The chance that one block fails, where that is drawn for each message."""
        return BLOCK_ERRORS if self.block_errors == "drawn" else 0.0

    @property
    def least_snr_db(self) -> UpDown[float]:
        """That of the lowest row."""
        return UpDown(self.tables.uplink.least_snr_db, self.tables.downlink.least_snr_db)

    def rates_at_all(self, snr_db: RatiosOfMany, before: RatesOfMany | None = None) -> RatesOfMany:
        """The best row for each device and direction, whatever it was before."""
        uplink, downlink = self.tables
        up, down = uplink.row_of(snr_db.uplink), downlink.row_of(snr_db.downlink)
        return RatesOfMany(
            uplink.bps[up],
            downlink.bps[down],
            uplink.share[up],
            downlink.share[down],
            formats=UpDown(uplink.formats, downlink.formats),
            uplink_row=up,
            downlink_row=down,
        )

    def uplink_density(self, rates: RatesOfMany) -> NDArray[np.float64]:
        """A device puts all of its power into the resource blocks or tones that it has."""
        if rates.uplink_row is None:
            return super().uplink_density(rates)
        tdd: TddPattern | None = getattr(self, "tdd", None)
        duty = np.array([row.duty for row in rates.formats.uplink])[rates.uplink_row]
        sends = duty / (1.0 if tdd is None else tdd.time_shares.uplink)  # of the time that uplinks have
        return np.where(rates.uplink_bps > 0, sends / rates.uplink_share, 1.0)

    def budget_at(
        self, way: Literal[0, 1], power: PowerBudget | None, loss_db: float, snr_db: UpDown[float]
    ) -> LinkBudget:
        """With the row that is taken."""
        return self.budget_of(self.tables[way].at(snr_db[way]), way, power, loss_db, snr_db[way])

    def budget_of(
        self, row: Row, way: Literal[0, 1], power: PowerBudget | None, loss_db: float, snr_db: float
    ) -> LinkBudget:
        """How one direction comes to the rate of *row*."""
        steps: list[Term] = [
            ("needed SNR", row.snr_db, "dB"),
            ("share of the carrier", row.share, ""),
            ("duty of transmission", row.format.duty, ""),
            ("category maximum", row.format.most_bps, "bit/s"),
        ]
        return LinkBudget(
            power=power,
            shadowing_db=loss_db,
            snr_db=snr_db,
            bandwidth_hz=self.bandwidths_hz[way],
            steps=steps,
            rate_bps=row.bps,
            row=row.format.row,
        )
