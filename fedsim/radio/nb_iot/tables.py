"""The standard's tables of NB-IoT: transport blocks, repetitions, times of a resource unit, needed ratios.

Sources: TS 36.211 table 10.1.2.3-1 (resource units), TS 36.213 tables 16.4.1.3-2 and 16.5.1.1-3 (repetitions),
16.4.1.5.1-1 and 16.5.1.2-2 (block sizes). Needed ratios are no part of the standard: ``needed_snr.csv`` is a fit to
simulations of links.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = [
    "DOWN_REPETITIONS",
    "UNIT_MS",
    "UP_REPETITIONS",
    "Blocks",
    "NeededSnr",
    "down_blocks",
    "needed_snr",
    "up_blocks",
]

DOWN_REPETITIONS = (1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
"""TS 36.213 table 16.4.1.3-2."""
UP_REPETITIONS = (1, 2, 4, 8, 16, 32, 64, 128)
"""TS 36.213 table 16.5.1.1-3."""
UNIT_MS = {12: 1.0, 6: 2.0, 3: 4.0, 1: 8.0}
"""How long a resource unit of so many tones of 15 kHz is (TS 36.211 table 10.1.2.3-1); four times that at 3.75 kHz."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """One size of a transport block."""

    i_tbs: int
    units: int
    """Subframes down, resource units up."""
    bits: int


@dataclass(frozen=True, slots=True)
class NeededSnr:
    """From which ratio on a channel has a tenth of block errors."""

    a_db: float
    b_db_per_i_tbs: float
    first_repetition_db: float
    doubling_db: float

    def db(self, i_tbs: int, repetitions: int) -> float:
        """The ratio over the bandwidth that is occupied."""
        gain_db = self.first_repetition_db * (repetitions >= 2) + self.doubling_db * math.log2(repetitions)
        return self.a_db + self.b_db_per_i_tbs * i_tbs - gain_db


@cache
def needed_snr() -> dict[str, NeededSnr]:
    """By channel.

    >>> round(needed_snr()["twelve_tones_up"].db(12, 4), 3)
    0.21
    """
    return {
        row["channel"]: NeededSnr(
            float(row["a_db"]),
            float(row["b_db_per_i_tbs"]),
            float(row["first_repetition_db"]),
            float(row["doubling_db"]),
        )
        for row in _rows("needed_snr.csv")
    }


@cache
def down_blocks(category: str) -> tuple[Blocks, ...]:
    """Of the NPDSCH: NB1 has 680 bits at most, NB2 2536.

    >>> max(down_blocks("nb1"), key=lambda block: block.bits).bits
    680
    """
    return _blocks("npdsch_blocks.csv", "subframes", category)


@cache
def up_blocks(category: str) -> tuple[Blocks, ...]:
    """Of the NPUSCH: NB1 has 1000 bits at most, NB2 2536."""
    return _blocks("npusch_blocks.csv", "resource_units", category)


def _blocks(file: str, units: str, category: str) -> tuple[Blocks, ...]:
    return tuple(
        Blocks(int(row["i_tbs"]), int(row[units]), int(row["bits"]))
        for row in _rows(file)
        if category != "nb1" or row["nb1"] == "1"
    )


def _rows(name: str) -> list[dict[str, str]]:
    with (resources.files("fedsim.radio.nb_iot") / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
