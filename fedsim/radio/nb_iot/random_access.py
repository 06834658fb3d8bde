"""What random access takes of the uplink carrier of NB-IoT, which no data can have."""

from __future__ import annotations

from typing import Literal

from fedsim.settings import Settings

__all__ = ["RandomAccess"]

PREAMBLE_MS = 5.6
"""Four symbol groups of 1.4 ms (NPRACH format 0: TS 36.211 clause 10.1.6.1)."""
CARRIER_SUBCARRIERS = 48


class RandomAccess(Settings):
    """What random access of one coverage class takes of the uplink carrier (NPRACH: TS 36.211 clause 10.1.6)."""

    subcarriers: Literal[12, 24, 36, 48] = 12
    """Of the 48 subcarriers of 3.75 kHz."""
    repetitions: Literal[1, 2, 4, 8, 16, 32, 64, 128] = 1
    """Of each preamble, which lasts 5.6 ms."""
    period_ms: Literal[40, 80, 160, 240, 320, 640, 1280, 2560] = 160
    """Milliseconds from one occasion to the next."""

    @property
    def part(self) -> float:
        """Of the uplink carrier.

        >>> round(RandomAccess().part, 5)
        0.00875
        """
        return self.subcarriers / CARRIER_SUBCARRIERS * PREAMBLE_MS * self.repetitions / self.period_ms
