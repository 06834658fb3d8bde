"""What NB-IoT can send from which ratio on: every row is a cycle of control message, blocks and answer.

    down  (control + H x subframes x repetitions) / part + 4 + 12 + 2 x answers + 3     ms
    up    control / part + 8 + H x resource units x unit x repetitions + 3              ms

H is the number of HARQ processes, *part* the part of the subframes that carries no broadcast, *answers* how often an
acknowledgement of 2 ms is repeated. The other numbers are the gaps that a device needs to switch and to decode (TS
36.213 clauses 16.4.1, 16.4.2 and 16.5.1: k0 is 0 down, 8 up). With a period of the control channel, a cycle ends where
the next control message can begin. Leaves out control messages of other devices, and gaps in long transmissions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from fedsim.radio.nb_iot.tables import (
    DOWN_REPETITIONS,
    UNIT_MS,
    UP_REPETITIONS,
    Blocks,
    NeededSnr,
    down_blocks,
    needed_snr,
    up_blocks,
)
from fedsim.radio.rate_table import RateTable, Row
from fedsim.radio.settings import TransportFormat

__all__ = ["CARRIER_TONES", "Cycles", "down_cycle_ms", "down_table", "up_cycle_ms", "up_table"]

CARRIER_TONES = 12
"""Of 15 kHz each: 180 kHz."""
IN_BAND_MOST_I_TBS = 10
"""TS 36.213 clause 16.4.1.5.1."""
ONE_TONE_MOST_I_TBS = 10
"""TS 36.213 table 16.5.1.2-1."""
TO_BLOCKS_MS, TO_ANSWER_MS, TO_CONTROL_MS, ANSWER_MS = 4, 12, 3, 2
TO_UPLINK_MS = 8


@dataclass(frozen=True, slots=True)
class Cycles:
    """What all cycles of a radio have in common."""

    category: str
    """nb1 or nb2."""
    processes: int
    """HARQ processes: blocks of one cycle."""
    free_part: float
    """Part of the downlink subframes without broadcast."""
    period_ms: float
    """Of the control channel; 0 where a control message may begin at any time."""
    kept: float
    """Part of the rate that block errors leave."""
    drawn_errors: float
    """Chance of a block error that is drawn."""

    def whole_ms(self, cycle_ms: float) -> float:
        """Until the next control message can begin."""
        return cycle_ms if self.period_ms == 0 else math.ceil(cycle_ms / self.period_ms) * self.period_ms

    def format(self, row: str, block: Blocks, repetitions: int, duty: float, most_bps: float) -> TransportFormat:
        """What the network has to know of a row."""
        return TransportFormat(
            row=f"{row}, I_TBS {block.i_tbs}, {block.bits} bits, sent {_times(repetitions)}",
            duty=duty,
            most_bps=most_bps,
            block_bits=block.bits,
            grant_bits=self.processes * block.bits,
            repetitions=repetitions,
            block_errors=self.drawn_errors,
        )


def down_cycle_ms(
    subframes: int, repetitions: int = 1, *, control: int = 1, answers: int = 1, processes: int = 1, part: float = 1.0
) -> float:
    """How long a cycle of the downlink takes.

    >>> round(680 / down_cycle_ms(4), 2)  # kbit/s
    26.15
    """
    sent_ms = (control + processes * subframes * repetitions) / part
    return sent_ms + TO_BLOCKS_MS + TO_ANSWER_MS + ANSWER_MS * answers + TO_CONTROL_MS


def up_cycle_ms(
    units: int,
    repetitions: int = 1,
    *,
    unit_ms: float = 1.0,
    control: int = 1,
    processes: int = 1,
    part: float = 1.0,
) -> float:
    """How long a cycle of the uplink takes.

    >>> 1000 / up_cycle_ms(4)  # kbit/s
    62.5
    """
    return control / part + TO_UPLINK_MS + processes * units * unit_ms * repetitions + TO_CONTROL_MS


@cache
def down_table(cycles: Cycles, *, in_band: bool, answers: int) -> RateTable:
    """Rates of the downlink where acknowledgements are repeated so often; ratios are over 180 kHz."""
    return RateTable(_down_rows(cycles, in_band, answers))


def _down_rows(cycles: Cycles, in_band: bool, answers: int) -> Iterator[Row]:
    needed = needed_snr()["in_band_down" if in_band else "stand_alone_down"]
    blocks = [block for block in down_blocks(cycles.category) if not in_band or block.i_tbs <= IN_BAND_MOST_I_TBS]
    most_bps = max(_down_bps(cycles, block, 1, 1, 1) for block in blocks)
    for block in blocks:
        for repetitions in DOWN_REPETITIONS:
            own_db = needed.db(block.i_tbs, repetitions)
            for control, control_db in _controls(needed, own_db):
                sent_ms = control + cycles.processes * block.units * repetitions
                bps = _down_bps(cycles, block, repetitions, control, answers)
                cycle_ms = cycles.processes * block.bits * 1e3 / bps * cycles.kept
                row = f"{block.units} subframes"  # not one: a longer block was better in all that was tried
                yield Row(
                    max(own_db, control_db),
                    bps,
                    sent_ms / cycles.free_part / cycle_ms,
                    cycles.format(row, block, repetitions, sent_ms / cycle_ms, most_bps),
                )


def _down_bps(cycles: Cycles, block: Blocks, repetitions: int, control: int, answers: int) -> float:
    cycle_ms = down_cycle_ms(
        block.units,
        repetitions,
        control=control,
        answers=answers,
        processes=cycles.processes,
        part=cycles.free_part,
    )
    return cycles.kept * cycles.processes * block.bits * 1e3 / cycles.whole_ms(cycle_ms)


def _controls(needed: NeededSnr, own_db: float) -> Iterator[tuple[int, float]]:
    """How often a control message may be repeated, with the ratio that it needs: until more repeats help no more."""
    for repetitions in DOWN_REPETITIONS:
        control_db = needed.db(0, repetitions)
        yield repetitions, control_db
        if control_db <= own_db:
            return


@cache
def up_table(cycles: Cycles, *, tones: tuple[float, ...], control: int, gain_db: float, free_air: float) -> RateTable:
    """Rates of the uplink with so many *tones* (0.25: one of 3.75 kHz) and repeats of control messages.

    Ratios are over 180 kHz: a device that sends on fewer tones has a better one there. *gain_db* is that of the base
    station's receiver over the one that the needed ratios were simulated for, *free_air* the part of the carrier that
    random access leaves.
    """
    return RateTable(_up_rows(cycles, tones, control, gain_db, free_air))


def _up_rows(
    cycles: Cycles, choices: tuple[float, ...], control: int, gain_db: float, free_air: float
) -> Iterator[Row]:
    blocks = up_blocks(cycles.category)
    peak = max(blocks, key=lambda block: block.bits / up_cycle_ms(block.units, processes=cycles.processes))
    peak_ms = up_cycle_ms(peak.units, processes=cycles.processes, part=cycles.free_part)
    most_bps = cycles.kept * cycles.processes * peak.bits * 1e3 / cycles.whole_ms(peak_ms)
    for tones in choices:
        needed = needed_snr()["one_tone_up" if tones <= 1 else "twelve_tones_up"]
        unit_ms = 4 * UNIT_MS[1] if tones < 1 else UNIT_MS[int(tones)]
        closer_db = 10 * math.log10(CARRIER_TONES / tones) + gain_db
        for block in blocks:
            if tones <= 1 and block.i_tbs > ONE_TONE_MOST_I_TBS:
                continue
            for repetitions in UP_REPETITIONS:
                sent_ms = cycles.processes * block.units * unit_ms * repetitions
                cycle_ms = cycles.whole_ms(
                    up_cycle_ms(
                        block.units,
                        repetitions,
                        unit_ms=unit_ms,
                        control=control,
                        processes=cycles.processes,
                        part=cycles.free_part,
                    )
                )
                duty, part = sent_ms / cycle_ms, sent_ms / cycle_ms * tones / CARRIER_TONES / free_air
                slower = max(1.0, part)  # random access leaves it less of the carrier than it could use
                row = f"{_tones(tones)}, {block.units} resource units"  # nor is it one here
                yield Row(
                    needed.db(block.i_tbs, repetitions) - closer_db,
                    cycles.kept * cycles.processes * block.bits * 1e3 / cycle_ms / slower,
                    part / slower,
                    cycles.format(row, block, repetitions, duty / slower, most_bps),
                )


def _tones(tones: float) -> str:
    return "1 tone of 3.75 kHz" if tones < 1 else "1 tone" if tones == 1 else f"{tones:g} tones"


def _times(repetitions: int) -> str:
    return "once" if repetitions == 1 else f"{repetitions} times"
