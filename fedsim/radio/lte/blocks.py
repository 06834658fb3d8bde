"""LTE's transport blocks: how many bits fit, and which signal-to-noise ratio they need.

    efficiency = (bits + checksums) / resource elements x repetitions         bits on a subcarrier in a symbol

A block needs the ratio of the channel quality indicator (CQI) that has its efficiency. Between two CQIs, decibels are
interpolated over the logarithm of the efficiency; beyond the highest, the last slope goes on. Below the lowest one,
each halving of the efficiency is good for 2.5 dB, less than the 3 dB of energy, as channel estimates get worse: N
repetitions reach 8.3 lg N dB further. A block is refused whose code rate is above 0.93, which no device need decode (TS
36.213 clause 7.1.7). Leaves out that short blocks need more than long ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from fedsim.radio.standard_tables import SUBCARRIERS, SYMBOLS, table

__all__ = ["Block", "block_bits", "down_elements", "needed_db", "needed_for", "up_elements"]

MOST_CODE_RATE = 0.93
CHECKSUM_BITS = 24
"""Of a block, and of each of its code blocks where there are several (TS 36.212 clause 5.1.2)."""
MOST_CODE_BLOCK_BITS = 6144
BELOW_DB_PER_DECADE = 8.3
"""2.5 dB for each factor of two."""
PORT_ELEMENTS = {1: (2, 0, 6), 2: (4, 0, 12), 4: (4, 4, 16)}
"""Elements for reference signals of a pair of resource blocks by antenna ports: in its first symbol, in its second, in
the others (TS 36.211 clause 6.10.1.2)."""
REFERENCE_SYMBOLS = 2
"""Of the uplink, in each subframe (TS 36.211 clause 5.5.2.1.2)."""


@cache
def _sizes() -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(int(row[str(count)]) for count in range(1, 111)) for row in table("fedsim.radio.lte", "blocks.csv")
    )


def block_bits(i_tbs: int, resource_blocks: int) -> int:
    """TS 36.213 table 7.1.7.2.1-1.

    >>> block_bits(11, 5), block_bits(26, 100)
    (1000, 75376)
    """
    return _sizes()[i_tbs][resource_blocks - 1]


@dataclass(frozen=True, slots=True)
class Block:
    """One transport block."""

    i_tbs: int
    bits: int
    modulation_bits: int
    """2, 4 or 6: QPSK, 16QAM or 64QAM."""
    elements: int
    """Resource elements that carry it in one subframe."""


def down_elements(ports: int, control_symbols: int) -> int:
    """Elements of a resource block that carry data down, of the 168 in a subframe.

    >>> down_elements(ports=2, control_symbols=3)  # what CQIs are for: TS 36.213 clause 7.2.3
    120
    """
    return SUBCARRIERS * (SYMBOLS - control_symbols) - sum(PORT_ELEMENTS[ports][min(control_symbols, 2) :])


def up_elements() -> int:
    """Elements of a resource block that carry data up.

    >>> up_elements()
    144
    """
    return SUBCARRIERS * (SYMBOLS - REFERENCE_SYMBOLS)


def with_checksums(bits: int) -> int:
    """Bits of a block that are coded.

    >>> with_checksums(1000), with_checksums(75376) - 75376
    (1024, 336)
    """
    coded = bits + CHECKSUM_BITS
    if coded <= MOST_CODE_BLOCK_BITS:
        return coded
    return coded + CHECKSUM_BITS * math.ceil(coded / (MOST_CODE_BLOCK_BITS - CHECKSUM_BITS))


@cache
def _qualities() -> tuple[Sequence[float], Sequence[float]]:
    rows = table("fedsim.radio.lte", "cqi.csv")
    return [math.log10(float(row["efficiency"])) for row in rows], [float(row["snr_db"]) for row in rows]


@cache
def needed_db(efficiency: float) -> float:
    """The ratio for a tenth of block errors with white noise.

    >>> needed_db(0.1523), round(needed_db(0.1523 / 2), 2), needed_db(0.877)
    (-6.7, -9.2, 2.4)
    """
    decades, snr_db = _qualities()
    own = math.log10(efficiency)
    if own < decades[0]:
        return snr_db[0] - BELOW_DB_PER_DECADE * (decades[0] - own)
    if own > decades[-1]:
        slope_db = (snr_db[-1] - snr_db[-2]) / (decades[-1] - decades[-2])
        return snr_db[-1] + slope_db * (own - decades[-1])
    return float(np.interp(own, decades, snr_db))


def needed_for(block: Block, repetitions: int = 1) -> float:
    """The ratio that a block needs which is sent so often; infinite where its code rate is too high."""
    elements = block.elements * repetitions
    efficiency = with_checksums(block.bits) / elements
    return needed_db(efficiency) if efficiency <= MOST_CODE_RATE * block.modulation_bits else math.inf
