"""What 5G New Radio can send from which ratio on.

    rate = v x Q x f x R x resource blocks x 12 x 14 / slot x (1 - overhead) x share of time x what block errors leave

with v layers, modulations of Q bits, the scaling f of the device and the code rate R: TS 38.306 clause 4.1.2, for every
modulation and coding scheme rather than the highest. Of v layers each has 10 lg v decibels less than one alone, and
they do not disturb each other, as on the best of channels: configure as many as the place really carries. In the uplink
a device puts its power into the resource blocks that it has: n of N raise its ratio by 10 lg (N / n), with n a product
of 2, 3 and 5 (transform precoding, which devices with little power use), or all of them. Any n would be better by a
seventh at most, and by 2 % on average.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from fedsim.radio.nr.tables import Scheme, schemes
from fedsim.radio.rate_table import RateTable, Row
from fedsim.radio.settings import TransportFormat
from fedsim.radio.standard_tables import SUBCARRIERS, SYMBOLS, precoded_sizes

__all__ = ["OVERHEADS", "NrDirection", "nr_table", "slot_s"]

OVERHEADS = {(1, "downlink"): 0.14, (1, "uplink"): 0.08, (2, "downlink"): 0.18, (2, "uplink"): 0.10}
"""For control channels and reference signals, by frequency range: TS 38.306 clause 4.1.2."""


def slot_s(subcarrier_khz: int) -> float:
    """How long a slot is (TS 38.211 clause 4.3.2).

    >>> slot_s(30)
    0.0005
    """
    return 15e-3 / subcarrier_khz


@dataclass(frozen=True, slots=True)
class NrDirection:
    """What the rows of one direction depend on."""

    uplink: bool
    resource_blocks: int
    """Of the carrier: ratios are over these."""
    most_blocks: int
    """That a device may use."""
    subcarrier_khz: int
    layers: int
    mcs_table: int
    scaling: float
    overhead: float
    most_bps: float
    """Of the device, before block errors."""
    better_db: float
    """How much less than with white noise is enough; negative: how much more is needed."""
    time_share: float
    kept: float
    """Part of the rate that block errors leave."""
    drawn_errors: float

    def slot_bits(self, scheme: Scheme, size: int, layers: int) -> float:
        """Bits in a slot that is all of this direction."""
        elements = size * SUBCARRIERS * SYMBOLS * (1 - self.overhead)
        return layers * scheme.efficiency * self.scaling * elements

    def sizes(self) -> Iterator[int]:
        """Resource blocks that are of use."""
        if self.uplink:
            yield from precoded_sizes(self.most_blocks - 1)
        yield self.most_blocks


@cache
def nr_table(direction: NrDirection) -> RateTable:
    """The rates of a direction."""
    return RateTable(_rows(direction))


def _rows(direction: NrDirection) -> Iterator[Row]:
    per_bit_bps = direction.time_share / slot_s(direction.subcarrier_khz)
    own = schemes(direction.mcs_table)
    densest = max(own, key=lambda scheme: scheme.efficiency)
    peak_bps = per_bit_bps * direction.slot_bits(densest, direction.most_blocks, direction.layers)
    most_bps = min(direction.most_bps, peak_bps)
    for layers in range(1, direction.layers + 1):
        for size in direction.sizes():
            closer_db = 10 * math.log10(direction.resource_blocks / size) if direction.uplink else 0.0
            for scheme in own:
                bits = direction.slot_bits(scheme, size, layers)
                part = min(1.0, direction.most_bps / (per_bit_bps * bits))
                yield Row(
                    scheme.needed_db + 10 * math.log10(layers) - closer_db - direction.better_db,
                    direction.kept * min(per_bit_bps * bits, direction.most_bps),
                    part * size / direction.resource_blocks,
                    TransportFormat(
                        row=f"MCS {scheme.mcs} of table {direction.mcs_table} ({scheme.modulation}), {size} PRB, "
                        f"{layers} layer{'s' * (layers > 1)}",
                        duty=part * direction.time_share,
                        most_bps=direction.kept * most_bps,
                        block_bits=bits,
                        grant_bits=bits / size,
                        block_errors=direction.drawn_errors,
                    ),
                )
