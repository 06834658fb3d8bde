"""The radio `redcap`: 5G for devices of reduced capability, in 20 MHz and with one or two antennas.

A wider carrier holds several such devices side by side: a cell says with `carriers` how many times 20 MHz it has for
them. Leaves out the pauses in which a half-duplex device switches.
"""

from __future__ import annotations

import math
from typing import Literal

from fedsim.errors import Misfit
from fedsim.radio.nr.family import McsTable, NrFamily
from fedsim.radio.settings import Duplex, UpDown
from fedsim.settings import Positive, key_rule

__all__ = ["RedCap"]

MOST_MHZ = 20.0
REDUCED_BLOCKS = {15: 25, 30: 12}
"""Resource blocks for data of a device of Release 18, 5 MHz: TS 38.306 clause 4.2.21."""
REDUCED_BPS = 10e6


class RedCap(NrFamily):
    """5G RedCap: New Radio in 20 MHz with one or two receive antennas, or at 10 Mbit/s (eRedCap)."""

    name: Literal["redcap"] = "redcap"
    bandwidth_mhz: Positive = 20.0
    """Of the carrier, in megahertz: at most 20."""
    subcarrier_khz: Literal[15, 30] = 15
    """Distance of subcarriers, in kilohertz: a slot is 1 or 0.5 ms long."""
    antennas: Literal[1, 2] = 1
    """Receive antennas, and so most layers of the downlink; the uplink has one."""
    downlink_mcs_table: McsTable = 1
    """The table of modulation and coding schemes; 1 is up to 64QAM, 2 up to 256QAM (optional), 3 for bad coverage."""
    duplex: Duplex = "full"
    """half: the device sends or receives, though each direction has a frequency of its own (optional)."""
    release: Literal[17, 18] = 17
    """18: eRedCap, with data in 5 MHz and 10 Mbit/s at most."""

    @key_rule
    def _carrier_of_the_standard(self) -> None:
        if self.bandwidth_mhz > MOST_MHZ:
            raise Misfit(
                f"bandwidth_mhz={self.bandwidth_mhz:g} is more than RedCap devices have (20); give at most 20, and the "
                "cell carriers: how many times that a wider carrier holds",
                "bandwidth_mhz",
            )
        self.check_carrier("bandwidth_mhz")

    @key_rule
    def _half_duplex_on_two_frequencies(self) -> None:
        if self.duplex == "half" and self.tdd is not None:
            raise Misfit(
                "duplex=half is for a frequency for each direction, and with tdd they take turns on one anyway; "
                "leave one of them out",
                "duplex",
            )

    @property
    def range_number(self) -> Literal[1, 2]:
        """RedCap is below 7.125 GHz here."""
        return 1

    @property
    def carrier_mhz(self) -> float:
        """As the key says."""
        return self.bandwidth_mhz

    @property
    def most_layers(self) -> UpDown[int]:
        """One up, one for each antenna down."""
        return UpDown(1, self.antennas)

    @property
    def device_blocks(self) -> int:
        """All, or those of 5 MHz."""
        if self.release == 17:
            return self.resource_blocks
        return min(self.resource_blocks, REDUCED_BLOCKS[self.subcarrier_khz])

    @property
    def device_most_bps(self) -> float:
        """10 Mbit/s with Release 18."""
        return math.inf if self.release == 17 else REDUCED_BPS

    @property
    def device_duplex(self) -> Duplex:
        """As the key says."""
        return self.duplex
