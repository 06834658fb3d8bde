"""What the radios of 5G have in common: a carrier, its turns, tables of modulation and coding, and the way to a grant.

    delay = (period / 2 + 1 for the request + slots until the grant + k2) x slot

k2 counts slots from the grant to the data (TS 38.214 clause 6.1.2.1). With tdd, a period of at least one pattern holds
the wait for an uplink slot. Leaves out grants that wait for a downlink slot.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Literal

from annotated_types import Interval

from fedsim.errors import Misfit
from fedsim.radio.carrier import TddPattern
from fedsim.radio.nr.rows import OVERHEADS, NrDirection, nr_table, slot_s
from fedsim.radio.nr.tables import resource_blocks
from fedsim.radio.rate_table import RateTable
from fedsim.radio.scheduled import ScheduledRadio
from fedsim.radio.settings import UpDown
from fedsim.radio.standard_tables import SUBCARRIERS
from fedsim.settings import key_rule

__all__ = ["McsTable", "NrFamily"]

McsTable = Literal[1, 2, 3]
"""1: up to 64QAM; 2: up to 256QAM; 3: up to 64QAM, with code rates for bad coverage (TS 38.214 tables 5.1.3.1-1 to
-3)."""
REQUEST = 1


class NrFamily(ScheduledRadio):
    """A radio with 5G's slots."""

    subcarrier_khz: Literal[15, 30, 60, 120] = 30
    """Distance of subcarriers, in kilohertz: a slot is 1, 0.5, 0.25 or 0.125 ms long."""
    uplink_mcs_table: McsTable = 1
    """The table of modulation and coding schemes; 1 is up to 64QAM, 2 up to 256QAM, 3 for bad coverage."""
    downlink_mcs_table: McsTable = 2
    """The same of the downlink."""
    tdd: TddPattern | None = None
    """How the directions take turns on one frequency; left out, each has one of its own."""
    scheduling_request_slots: Literal[1, 2, 4, 5, 8, 10, 16, 20, 40, 80, 160, 320, 640] = 20
    """Slots from one chance of a device to ask for a grant to the next (TS 38.331, SchedulingRequestResourceConfig)."""
    grant_slots: Annotated[int, Interval(ge=0, le=64)] = 3
    """Slots that the base station needs from the request to the grant."""
    k2_slots: Annotated[int, Interval(ge=0, le=32)] = 3
    """Slots from the grant to the data."""

    @key_rule
    def _requests_no_denser_than_the_pattern(self) -> None:
        pattern = 0 if self.tdd is None else len(self.tdd.slots)
        if self.scheduling_request_slots < pattern:
            raise Misfit(
                f"scheduling_request_slots={self.scheduling_request_slots} are fewer than the pattern of tdd has "
                f"({pattern}), and a device can ask in uplink slots only; give at least {pattern}",
                "scheduling_request_slots",
            )

    @property
    @abstractmethod
    def range_number(self) -> Literal[1, 2]:
        """The frequency range: below 7.125 GHz, or above 24 GHz."""

    @property
    @abstractmethod
    def carrier_mhz(self) -> float:
        """Bandwidth of the carrier."""

    @property
    @abstractmethod
    def most_layers(self) -> UpDown[int]:
        """Of each direction."""

    @property
    def device_blocks(self) -> int:
        """Resource blocks that one device can use."""
        return self.resource_blocks

    @property
    def device_most_bps(self) -> float:
        """What one device can do at most, however good its ratio."""
        return math.inf

    @property
    def device_scaling(self) -> float:
        """The factor f of TS 38.306 clause 4.1.2."""
        return 1.0

    @property
    def resource_blocks(self) -> int:
        """Of the carrier."""
        return resource_blocks()[self.range_number, self.subcarrier_khz][self.carrier_mhz]

    def check_carrier(self, key: str) -> None:
        """Raise `Misfit` where the standard has no such carrier; *key* is that of the bandwidth."""
        known = resource_blocks().get((self.range_number, self.subcarrier_khz))
        if known is None:
            of_range = [spacing for range_, spacing in resource_blocks() if range_ == self.range_number]
            raise Misfit(
                f"subcarrier_khz={self.subcarrier_khz} is not for frequency range {self.range_number}; "
                f"it has {', '.join(map(str, of_range))}",
                "subcarrier_khz",
            )
        if self.carrier_mhz not in known:
            nearest = sorted(sorted(known, key=lambda mhz: abs(math.log(mhz / self.carrier_mhz)))[:2])
            raise Misfit(
                f"{key}={self.carrier_mhz:g} is no bandwidth of frequency range {self.range_number} with subcarriers "
                f"of {self.subcarrier_khz} kHz; the nearest are {' and '.join(f'{mhz:g}' for mhz in nearest)}",
                key,
            )

    @property
    def bandwidths_hz(self) -> UpDown[float]:
        """What the resource blocks take."""
        occupied_hz = self.resource_blocks * SUBCARRIERS * self.subcarrier_khz * 1e3
        return UpDown(occupied_hz, occupied_hz)

    @property
    def slot_s(self) -> float:
        """How long a slot is."""
        return slot_s(self.subcarrier_khz)

    @property
    def grant_delay_s(self) -> float:
        """Half a period, the request, the base station's slots, and k2."""
        return (self.scheduling_request_slots / 2 + REQUEST + self.grant_slots + self.k2_slots) * self.slot_s

    @property
    def assignment_delay_s(self) -> float:
        """A slot: data comes together with its control message."""
        return self.slot_s

    @property
    def tables(self) -> UpDown[RateTable]:
        """By MCS, layers and resource blocks."""
        return UpDown(nr_table(self._direction(0)), nr_table(self._direction(1)))

    def _direction(self, way: Literal[0, 1]) -> NrDirection:
        times = UpDown(1.0, 1.0) if self.tdd is None else self.tdd.time_shares
        return NrDirection(
            uplink=way == 0,
            resource_blocks=self.resource_blocks,
            most_blocks=self.device_blocks,
            subcarrier_khz=self.subcarrier_khz,
            layers=self.most_layers[way],
            mcs_table=(self.uplink_mcs_table, self.downlink_mcs_table)[way],
            scaling=self.device_scaling,
            overhead=OVERHEADS[self.range_number, ("uplink", "downlink")[way]],
            most_bps=self.device_most_bps,
            better_db=(self.uplink_receiver_gain_db if way == 0 else 0.0) - self.implementation_margin_db,
            time_share=times[way],
            kept=self.kept,
            drawn_errors=self.drawn_errors,
        )
