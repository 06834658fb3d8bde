"""The radio `lte`: from signal-to-noise ratios to LTE's transport blocks.

Leaves out 256QAM (Release 12), carrier aggregation, beamforming, subframes with broadcast or synchronisation (a percent
at 20 MHz, more on narrow carriers) and the resource blocks at the edges that carry uplink control.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Literal

from fedsim.errors import Misfit
from fedsim.radio.carrier import TddPattern
from fedsim.radio.lte.blocks import down_elements, up_elements
from fedsim.radio.lte.family import LteFamily
from fedsim.radio.lte.rows import LteDirection, lte_table
from fedsim.radio.rate_table import RateTable
from fedsim.radio.settings import UpDown
from fedsim.radio.standard_tables import table
from fedsim.settings import Positive, key_rule

__all__ = ["RESOURCE_BLOCK_HZ", "Category", "Lte", "categories"]

RESOURCE_BLOCK_HZ = 180e3
RESOURCE_BLOCKS = {1.4: 6, 3.0: 15, 5.0: 25, 10.0: 50, 15.0: 75, 20.0: 100}
"""By bandwidth in megahertz: TS 36.101 table 5.6-1."""
NARROW = 10
"""Up to so many resource blocks the control region is a symbol longer (TS 36.211 table 6.7-1)."""


@dataclass(frozen=True, slots=True)
class Category:
    """What devices of a category can do at most: bits in a subframe of 1 ms."""

    downlink_bits: int
    downlink_block_bits: int
    layers: int
    uplink_bits: int
    uplink_64qam: bool


@cache
def categories() -> dict[str, Category]:
    """By name.

    >>> categories()["cat4"].downlink_bits
    150752
    """
    return {
        row["category"]: Category(
            int(row["downlink_bits"]),
            int(row["downlink_block_bits"]),
            int(row["layers"]),
            int(row["uplink_bits"]),
            row["uplink_64qam"] == "yes",
        )
        for row in table("fedsim.radio.lte", "categories.csv")
    }


class Lte(LteFamily):
    """LTE: the best transport block of the standard for each signal-to-noise ratio, bandwidth and category."""

    name: Literal["lte"] = "lte"
    bandwidth_mhz: Positive
    """Of each direction, in megahertz: 1.4, 3, 5, 10, 15 or 20 (6, 15, 25, 50, 75 or 100 resource blocks)."""
    category: Literal["cat1", "cat1bis", "cat2", "cat3", "cat4", "cat5"] = "cat4"
    """What devices can do at most; cat1bis is cat1 with one antenna."""
    layers: Literal[1, 2, 4] | None = None
    """Most layers of the downlink; left out, those of the category. The uplink has one."""
    control_symbols: Literal[1, 2, 3] = 1
    """Symbols of each subframe that carry control messages; one more at 1.4 MHz. Peak rates are for 1; the more devices
    are served in a subframe, the more it takes."""
    tdd: TddPattern | None = None
    """How the directions take turns in subframes; left out, each has a frequency of its own."""

    @key_rule
    def _bandwidth_of_the_standard(self) -> None:
        if self.bandwidth_mhz not in RESOURCE_BLOCKS:
            nearest = sorted(sorted(RESOURCE_BLOCKS, key=lambda mhz: abs(math.log(mhz / self.bandwidth_mhz)))[:2])
            raise Misfit(
                f"bandwidth_mhz={self.bandwidth_mhz:g} is none of LTE's (1.4, 3, 5, 10, 15, 20); "
                f"the nearest are {nearest[0]:g} and {nearest[1]:g}",
                "bandwidth_mhz",
            )

    @key_rule
    def _layers_of_the_category(self) -> None:
        most = categories()[self.category].layers
        if self.layers is not None and self.layers > most:
            raise Misfit(
                f"layers={self.layers} are more than devices of {self.category} receive ({most}); "
                "give fewer, or another category",
                "layers",
            )

    @property
    def resource_blocks(self) -> int:
        """Of each direction."""
        return RESOURCE_BLOCKS[self.bandwidth_mhz]

    @property
    def bandwidths_hz(self) -> UpDown[float]:
        """What the resource blocks take."""
        occupied_hz = self.resource_blocks * RESOURCE_BLOCK_HZ
        return UpDown(occupied_hz, occupied_hz)

    @property
    def tables(self) -> UpDown[RateTable]:
        """By I_TBS, resource blocks and layers."""
        device, times = categories()[self.category], UpDown(1.0, 1.0) if self.tdd is None else self.tdd.time_shares
        layers = self.layers or device.layers
        symbols = self.control_symbols + (self.resource_blocks <= NARROW)
        up = LteDirection(
            uplink=True,
            resource_blocks=self.resource_blocks,
            elements=up_elements(),
            layers=1,
            most_bits=device.uplink_bits,
            most_block_bits=device.uplink_bits,
            modulation_bits=6 if device.uplink_64qam else 4,
            better_db=self.uplink_receiver_gain_db - self.implementation_margin_db,
            time_share=times.uplink,
            kept=self.kept,
            drawn_errors=self.drawn_errors,
        )
        down = LteDirection(
            uplink=False,
            resource_blocks=self.resource_blocks,
            elements=down_elements(layers, symbols),
            layers=layers,
            most_bits=device.downlink_bits,
            most_block_bits=device.downlink_block_bits,
            modulation_bits=6,
            better_db=-self.implementation_margin_db,
            time_share=times.downlink,
            kept=self.kept,
            drawn_errors=self.drawn_errors,
        )
        return UpDown(lte_table(up), lte_table(down))
