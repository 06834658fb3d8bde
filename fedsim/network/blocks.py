"""Transport blocks: what a message takes of the air beyond its own bits.

A radio with a table cuts messages into transport blocks. The last block of a message is mostly empty, which matters for
short messages: one of fewer than ten blocks takes whole cycles of blocks; a longer one is rounded by less than a tenth,
which is left out. Where block errors are drawn, a message of n blocks has r blocks that are sent again,

    r ~ negative binomial (n, 1 - p):  each is tried until it is right, with the chance p of an error each time

(hybrid ARQ without a last try: what remains is for the radio link control, which loses nothing). Bytes are counted as
they are handed to the link: headers of blocks and blocks that are sent again are airtime, not bytes.
"""

from __future__ import annotations

import math

import numpy as np

from fedsim.radio.settings import TransportFormat

__all__ = ["SHORT_BLOCKS", "air_bits"]

SHORT_BLOCKS = 10
"""A message of fewer blocks is rounded up to whole cycles."""


def air_bits(
    message_bits: float, format_: TransportFormat, rng: np.random.Generator | None = None, messages: int = 1
) -> float:
    """Bits for which *messages* of that size use the air. *rng* may be None where no errors are drawn.

    >>> one_block = TransportFormat(block_bits=1000.0, blocks_together=2)
    >>> air_bits(100.0, one_block), air_bits(3_500.0, one_block), air_bits(10_500.0, one_block)
    (2000.0, 4000.0, 10500.0)
    """
    block_bits = format_.block_bits
    if block_bits == 0 or message_bits == 0:
        return message_bits * messages
    if message_bits < SHORT_BLOCKS * block_bits:
        cycle_bits = block_bits * format_.blocks_together
        message_bits = math.ceil(message_bits / cycle_bits) * cycle_bits
    sent_bits = message_bits * messages
    if format_.block_errors == 0:
        return sent_bits
    assert rng is not None
    blocks = messages * math.ceil(message_bits / block_bits)
    return sent_bits + block_bits * float(rng.negative_binomial(blocks, 1.0 - format_.block_errors))
