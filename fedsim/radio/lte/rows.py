"""What LTE can send from which ratio on: a block for each layer in each subframe.

    rate = bits of all layers / 1 ms x share of time x what block errors leave

Of v layers each has 10 lg v decibels less than one alone, and they do not disturb each other, as on the best of
channels. A device in the uplink puts its power into the resource blocks that it has: n of N raise its ratio by 10 lg (N
/ n); n is a product of 2, 3 and 5. In the downlink power is spread over all of them, so fewer help nobody; a device
whose category allows no larger block gets the fewest that hold it, and others have the rest. Leaves out that a block
over two layers is up to 0.7 % smaller than two blocks (table 7.1.7.2.2-1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from fedsim.radio.lte.blocks import Block, block_bits, needed_for
from fedsim.radio.lte.family import SUBFRAME_S
from fedsim.radio.rate_table import RateTable, Row
from fedsim.radio.settings import TransportFormat
from fedsim.radio.standard_tables import precoded_sizes

__all__ = ["LteDirection", "lte_table"]

MOST_I_TBS = 26
MODULATIONS = {2: "QPSK", 4: "16QAM", 6: "64QAM"}


@dataclass(frozen=True, slots=True)
class LteDirection:
    """What the rows of one direction depend on."""

    uplink: bool
    resource_blocks: int
    elements: int
    """Of one resource block in a subframe that carry data."""
    layers: int
    most_bits: int
    """Of all layers in a subframe, by the category."""
    most_block_bits: int
    modulation_bits: int
    """Of the densest modulation."""
    better_db: float
    """How much less than with white noise is enough; negative: how much more is needed."""
    time_share: float
    kept: float
    """Part of the rate that block errors leave."""
    drawn_errors: float

    def modulation_of(self, i_tbs: int) -> int:
        """Bits of a symbol (TS 36.213 tables 7.1.7.1-1 and 8.6.1-1; the denser one of two)."""
        for_16qam, for_64qam = (10, 19) if self.uplink else (9, 15)
        bits = 2 if i_tbs < for_16qam else 4 if i_tbs < for_64qam else 6
        return min(bits, self.modulation_bits)

    def sizes(self, i_tbs: int, layers: int) -> Iterator[int]:
        """How many resource blocks are of use."""
        most = min(self.most_block_bits, self.most_bits if layers == 1 else math.ceil(self.most_bits / layers))
        if layers == 4:
            most = self.most_bits  # whose blocks lie over two layers each, and are cut below
        if self.uplink:
            yield from (size for size in precoded_sizes(self.resource_blocks) if block_bits(i_tbs, size) <= most)
            return
        fitting = [size for size in range(1, self.resource_blocks + 1) if block_bits(i_tbs, size) <= most]
        largest = max((block_bits(i_tbs, size) for size in fitting), default=0)
        yield from (size for size in fitting if block_bits(i_tbs, size) == largest)


@cache
def lte_table(direction: LteDirection) -> RateTable:
    """The rates of a direction; ratios are over all of its resource blocks."""
    return RateTable(_rows(direction))


def _rows(direction: LteDirection) -> Iterator[Row]:
    per_bit_bps = direction.kept * direction.time_share / SUBFRAME_S
    for layers in (layers for layers in (1, 2, 4) if layers <= direction.layers):
        for i_tbs in range(MOST_I_TBS + 1):
            modulation = direction.modulation_of(i_tbs)
            for size in direction.sizes(i_tbs, layers):
                bits = block_bits(i_tbs, size)
                needed_db = needed_for(Block(i_tbs, bits, modulation, size * direction.elements))
                if needed_db == math.inf:
                    continue
                closer_db = 10 * math.log10(direction.resource_blocks / size) if direction.uplink else 0.0
                all_bits = min(layers * bits, direction.most_bits)
                yield Row(
                    needed_db + 10 * math.log10(layers) - closer_db - direction.better_db,
                    all_bits * per_bit_bps,
                    size / direction.resource_blocks,
                    TransportFormat(
                        row=f"I_TBS {i_tbs} ({MODULATIONS[modulation]}), {size} PRB, {_layers(layers)}{all_bits} bits",
                        duty=direction.time_share,
                        most_bps=direction.most_bits * per_bit_bps,
                        block_bits=all_bits,
                        grant_bits=all_bits / size,
                        block_errors=direction.drawn_errors,
                    ),
                )


def _layers(layers: int) -> str:
    return "" if layers == 1 else f"{layers} layers, "
