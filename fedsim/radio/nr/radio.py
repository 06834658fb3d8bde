"""The radio `nr`: from signal-to-noise ratios to modulation, coding and layers of 5G New Radio.

Leaves out beamforming (count it as antenna gain), the rounding of transport blocks (TS 38.214 clause 5.1.3.2), carrier
aggregation, and channels that do not carry as many layers as are configured, but for their share of the power.
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Interval

from fedsim.errors import Misfit
from fedsim.radio.nr.family import NrFamily
from fedsim.radio.settings import UpDown
from fedsim.settings import Positive, key_rule

__all__ = ["Nr"]

SCALINGS = (1.0, 0.8, 0.75, 0.4)


class Nr(NrFamily):
    """5G New Radio: the best modulation, coding and layers of the standard for each signal-to-noise ratio."""

    name: Literal["nr"] = "nr"
    bandwidth_mhz: Positive
    """Of the carrier, in megahertz, such as 100: one of TS 38.101's for the subcarriers."""
    frequency_range: Literal["fr1", "fr2"] = "fr1"
    """fr1: below 7.125 GHz; fr2: millimetre waves, with wider carriers and more overhead (TS 38.101-1 and -2)."""
    uplink_layers: Annotated[int, Interval(ge=1, le=4)] = 1
    """Most layers of the uplink; fewer are used where the ratio is too low for them."""
    downlink_layers: Annotated[int, Interval(ge=1, le=8)] = 2
    """Most layers of the downlink."""
    scaling: Annotated[float, Interval(ge=0.4, le=1)] = 1.0
    """The scaling factor of the device's peak rate: 1, 0.8, 0.75 or 0.4 (TS 38.306 clause 4.1.2)."""

    @key_rule
    def _carrier_of_the_standard(self) -> None:
        self.check_carrier("bandwidth_mhz")

    @key_rule
    def _scaling_of_the_standard(self) -> None:
        if self.scaling not in SCALINGS:
            raise Misfit(f"scaling={self.scaling:g} is none of the standard's; it has 1, 0.8, 0.75 and 0.4", "scaling")

    @property
    def range_number(self) -> Literal[1, 2]:
        """As the key says."""
        return 1 if self.frequency_range == "fr1" else 2

    @property
    def carrier_mhz(self) -> float:
        """As the key says."""
        return self.bandwidth_mhz

    @property
    def most_layers(self) -> UpDown[int]:
        """As the keys say."""
        return UpDown(self.uplink_layers, self.downlink_layers)

    @property
    def device_scaling(self) -> float:
        """As the key says."""
        return self.scaling
