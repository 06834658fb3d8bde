"""What LTE-M can send from which ratio on: blocks of the standard's table, repeated where coverage is bad.

    rate  = blocks of a cycle x bits / cycle x what block errors leave
    share = subframes with data / cycle x resource blocks / those of the carrier

Coverage enhancement (CE) mode A has 1 to 6 resource blocks (24 of Cat M2) and up to 32 repetitions, mode B two sizes
and up to 2048 (TS 36.213 clauses 7.1.6.4, 7.1.7, 8.1.3 and 8.6.2, tables 7.1.11-1, 7.1.11-2, 8-2b and 8-2c). A device
in the uplink puts its power into the resource blocks that it has. A control message is repeated until it is protected
as well as the data, and so are acknowledgements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from fedsim.radio.lte.blocks import Block, block_bits, down_elements, needed_for, up_elements, with_checksums
from fedsim.radio.lte_m.timing import full_duplex_down, full_duplex_up, half_duplex_down, half_duplex_up
from fedsim.radio.rate_table import RateTable, Row
from fedsim.radio.settings import TransportFormat
from fedsim.radio.standard_tables import precoded_sizes

__all__ = ["LteMDirection", "Mode", "controls", "lte_m_table", "narrowband_blocks"]

MODE_A_REPETITIONS = (1, 2, 4, 8, 16, 32)
MODE_B_REPETITIONS = (1, 4, 8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
BLOCKS_OF_CATEGORY = {"m1": 6, "m2": 24}
MOST_I_TBS = 14
LARGE_MOST_I_TBS = 21
"""Of Release 14's large blocks in the uplink of Cat M1, of 2984 bits."""
MODE_B_DOWN = {4: 4, 6: 6}
"""Resource blocks of mode B, with the column of the table of block sizes that they take."""
MODE_B_UP = {1: 3, 2: 6}
CONTROL_BITS = 50
"""Of a control message with its checksum, about (DCI formats 6-0 and 6-1: TS 36.212 clause 5.3.3.1)."""
CONTROL_BLOCKS, MOST_CONTROLS = 6, 256
BUNDLED = 4
"""Blocks with one acknowledgement (TS 36.213 clause 7.3)."""
BLOCKS_WITHOUT_BUNDLING = 3
DOWN_ELEMENTS = down_elements(ports=2, control_symbols=3)
UP_ELEMENTS = up_elements()


def narrowband_blocks(category: str) -> int:
    """Resource blocks of what a device of the category uses at most: TS 36.306 clause 4.1A."""
    return BLOCKS_OF_CATEGORY[category]


@dataclass(frozen=True, slots=True)
class LteMDirection:
    """What the rows of one direction depend on."""

    uplink: bool
    category: str
    """m1 or m2."""
    half_duplex: bool
    processes: int
    """HARQ processes."""
    bundling: bool
    most_bits: int
    """Of a block."""
    most_i_tbs: int
    mode: Literal["a", "b"]
    """Of coverage enhancement."""
    better_db: float
    """How much less than with white noise is enough; negative: how much more is needed."""
    kept: float
    drawn_errors: float

    @property
    def elements(self) -> int:
        """Of one resource block in a subframe that carry data."""
        return UP_ELEMENTS if self.uplink else DOWN_ELEMENTS

    def blocks_of_cycle(self, repetitions: int) -> int:
        """How many blocks are sent before the device switches, or until each process has had one."""
        if not self.half_duplex:
            return self.processes
        if repetitions > 1:
            return 1
        return self.processes if self.bundling and not self.uplink else BLOCKS_WITHOUT_BUNDLING

    def cycle_ms(self, blocks: int, repetitions: int, control: int) -> int:
        """How long these take."""
        if self.half_duplex:
            if self.uplink:
                return half_duplex_up(blocks, repetitions, control)
            return half_duplex_down(blocks, repetitions, control, bundled=BUNDLED if self.bundling else 1)
        return (full_duplex_up if self.uplink else full_duplex_down)(blocks, repetitions, control)


@dataclass(frozen=True, slots=True)
class Mode:
    """A mode of coverage enhancement, in one direction."""

    name: str
    repetitions: tuple[int, ...]
    columns: tuple[tuple[int, int], ...]
    """Resource blocks, and the column of the table that has the block's bits."""
    most_i_tbs: int
    modulation_bits: int

    def modulation_of(self, i_tbs: int, *, uplink: bool) -> int:
        """Bits of a symbol (TS 36.213 tables 7.1.7.1-1 and 8.6.1-1)."""
        return min(self.modulation_bits, 2 if i_tbs < (10 if uplink else 9) else 4)


def mode_of(direction: LteMDirection) -> Mode:
    """What its mode allows."""
    if direction.mode == "b":
        columns = MODE_B_UP if direction.uplink else MODE_B_DOWN
        return Mode("B", MODE_B_REPETITIONS, tuple(columns.items()), 10 if direction.uplink else 9, 2)
    most = narrowband_blocks(direction.category)
    sizes = precoded_sizes(most) if direction.uplink else range(1, most + 1)
    return Mode("A", MODE_A_REPETITIONS, tuple((size, size) for size in sizes), direction.most_i_tbs, 4)


def controls(efficiency: float) -> int:
    """How often a control message is repeated that is to be as well protected as a block of this efficiency.

    >>> controls(0.2), controls(0.002)
    (1, 64)
    """
    times = CONTROL_BITS / (CONTROL_BLOCKS * DOWN_ELEMENTS) / efficiency
    return min(MOST_CONTROLS, 1 << max(0, math.ceil(math.log2(times))))


@cache
def lte_m_table(direction: LteMDirection) -> RateTable:
    """The rates of a direction; ratios are over all resource blocks of the category."""
    return RateTable(_rows(direction))


def _rows(direction: LteMDirection) -> Iterator[Row]:
    all_blocks = narrowband_blocks(direction.category)
    at_once = direction.blocks_of_cycle(1)
    most_bps = direction.kept * direction.most_bits * at_once / direction.cycle_ms(at_once, 1, 1) * 1e3
    mode = mode_of(direction)
    for block, size, repetitions in _ways(direction, mode):
        needed_db = needed_for(block, repetitions)
        if needed_db == math.inf:
            continue
        control = controls(with_checksums(block.bits) / (block.elements * repetitions))
        count = direction.blocks_of_cycle(repetitions)
        cycle_ms = direction.cycle_ms(count, repetitions, control)
        sent = count * repetitions / cycle_ms
        heard = (control + 1 + count * repetitions) / cycle_ms if direction.half_duplex else sent
        closer_db = 10 * math.log10(all_blocks / size) if direction.uplink else 0.0
        times = "sent once" if repetitions == 1 else f"{repetitions} repetitions"
        yield Row(
            needed_db - closer_db - direction.better_db,
            direction.kept * count * block.bits / cycle_ms * 1e3,
            sent * size / all_blocks,
            TransportFormat(
                row=f"I_TBS {block.i_tbs}, {block.bits} bits, {size} PRB, {times}, CE mode {mode.name}",
                duty=sent if direction.uplink else heard,
                most_bps=most_bps,
                block_bits=block.bits,
                grant_bits=block.bits * (count if direction.half_duplex else 1),
                repetitions=repetitions,
                block_errors=direction.drawn_errors,
            ),
        )


def _ways(direction: LteMDirection, mode: Mode) -> Iterator[tuple[Block, int, int]]:
    """All blocks, with the resource blocks that they take and how often they are sent."""
    for size, column in mode.columns:
        for i_tbs in range(mode.most_i_tbs + 1):
            bits = block_bits(i_tbs, column)
            if bits <= direction.most_bits:
                modulation = mode.modulation_of(i_tbs, uplink=direction.uplink)
                block = Block(i_tbs, bits, modulation, size * direction.elements)
                yield from ((block, size, repetitions) for repetitions in mode.repetitions)
