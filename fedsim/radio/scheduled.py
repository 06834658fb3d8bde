"""What LTE, LTE-M and 5G have in common: a base station that grants each use of the air, and margins on its tables.

A device that has something to send waits for its next chance to say so, says it, and waits for the grant:

    delay = period / 2 + request + processing + from the grant to the data

On average it waits half a period of the chances (scheduling requests: TS 36.321 and TS 38.321 clause 5.4.4). Leaves out
requests that are lost or collide, grants that a busy base station puts off, grants without a request, and random access
of a device that has no connection.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

from annotated_types import Interval

from fedsim.radio.settings import UpDown
from fedsim.radio.table_radio import TableRadio

__all__ = ["ScheduledRadio"]


class ScheduledRadio(TableRadio):
    """A radio whose base station grants the use of the air."""

    implementation_margin_db: Annotated[float, Interval(ge=0, le=20)] = 2.5
    """What a real receiver and a fading channel need beyond the needed ratios, which are those of white noise."""
    uplink_receiver_gain_db: Annotated[float, Interval(ge=-20, le=20)] = 3.0
    """What a base station's receive antennas gain over the single one that the needed ratios are for: 3 dB for two."""

    @property
    @abstractmethod
    def grant_delay_s(self) -> float:
        """From when a device has something to send until its data begins, on average, nobody else being there."""

    @property
    @abstractmethod
    def assignment_delay_s(self) -> float:
        """From when a base station has something to send until its data begins."""

    @property
    def access_delays_s(self) -> UpDown[float]:
        """What a message of each direction waits before its data begins."""
        return UpDown(self.grant_delay_s, self.assignment_delay_s)
