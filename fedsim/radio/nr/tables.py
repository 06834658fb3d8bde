"""The standard's tables of 5G New Radio: resource blocks, modulation and coding schemes, and what ratios these need.

The ratios of tables 1 and 2 are simulated. Table 3 has the schemes of table 1 and six below them, which keep the gap to
Shannon's bound of table 1's lowest scheme:

    needed = 10 lg (2 ^ efficiency - 1) + gap
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from fedsim.radio.standard_tables import table

__all__ = ["Scheme", "resource_blocks", "schemes"]

MODULATIONS = {2: "QPSK", 4: "16QAM", 6: "64QAM", 8: "256QAM"}


@dataclass(frozen=True, slots=True)
class Scheme:
    """A modulation and coding scheme."""

    mcs: int
    modulation_bits: int
    code_rate: float
    needed_db: float
    """For a tenth of block errors with white noise."""

    @property
    def efficiency(self) -> float:
        """Bits on a subcarrier in a symbol."""
        return self.modulation_bits * self.code_rate

    @property
    def modulation(self) -> str:
        """Its name."""
        return MODULATIONS[self.modulation_bits]


def shannon_db(efficiency: float) -> float:
    """The ratio at which Shannon's bound is so high.

    >>> shannon_db(1.0)
    0.0
    """
    return 10 * math.log10(2**efficiency - 1)


@cache
def schemes(number: int) -> tuple[Scheme, ...]:
    """Those of a table: TS 38.214 tables 5.1.3.1-1 to -3.

    >>> schemes(2)[-1].efficiency, schemes(3)[0].efficiency < schemes(1)[0].efficiency
    (7.40625, True)
    """
    rows = [row for row in table("fedsim.radio.nr", "mcs.csv") if int(row["table"]) == number]
    simulated = {} if number != 3 else {scheme.efficiency: scheme.needed_db for scheme in schemes(1)}
    found = []
    for row in rows:
        bits, code_rate = int(row["modulation_bits"]), float(row["rate_x1024"]) / 1024
        efficiency = bits * code_rate
        needed_db = float(row["snr_db"]) if row["snr_db"] else simulated.get(efficiency)
        if needed_db is None:
            lowest = schemes(1)[0]
            needed_db = shannon_db(efficiency) + lowest.needed_db - shannon_db(lowest.efficiency)
        found.append(Scheme(int(row["mcs"]), bits, code_rate, needed_db))
    return tuple(found)


@cache
def resource_blocks() -> dict[tuple[int, int], dict[float, int]]:
    """Frequency range and subcarrier spacing in kilohertz -> bandwidth in megahertz -> most resource blocks.

    Source: TS 38.101-1 and TS 38.101-2, table 5.3.2-1 of each.

    >>> resource_blocks()[1, 30][100.0]
    273
    """
    found: dict[tuple[int, int], dict[float, int]] = {}
    for row in table("fedsim.radio.nr", "resource_blocks.csv"):
        key = int(row["frequency_range"]), int(row["subcarrier_khz"])
        found.setdefault(key, {})[float(row["bandwidth_mhz"])] = int(row["resource_blocks"])
    return found
