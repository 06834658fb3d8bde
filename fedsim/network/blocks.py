"""Transport blocks: what a message takes of the air beyond its own bits.

A radio with a table grants the air in pieces: in NB-IoT and half-duplex LTE-M a cycle of whole blocks, in LTE and 5G a
resource block of one slot. The last piece of a message is mostly empty, which matters for short messages: one of fewer
than ten pieces takes whole ones; a longer one would be rounded by less than a tenth, which is left out. Where block
errors are drawn, a message of n transport blocks has r blocks that are sent again,

    r ~ negative binomial (n, 1 - p):  each is tried until it is right, with the chance p of an error each time

(hybrid ARQ without a last try: what remains is for the radio link control, which loses nothing). Bytes are counted as
they are handed to the link: blocks that are sent again are airtime, not bytes.
"""

from __future__ import annotations

import math

import numpy as np

from fedsim.radio.settings import TransportFormat

__all__ = ["SHORT_GRANTS", "air_bits"]

SHORT_GRANTS = 10
"""A message of fewer grants is rounded up to whole ones."""


def air_bits(
    message_bits: float, format_: TransportFormat, rng: np.random.Generator | None = None, messages: int = 1
) -> float:
    """Bits for which *messages* of that size use the air. *rng* may be None where no errors are drawn.

    >>> two_blocks = TransportFormat(block_bits=1000.0, grant_bits=2000.0)
    >>> air_bits(100.0, two_blocks), air_bits(3_500.0, two_blocks), air_bits(20_500.0, two_blocks)
    (2000.0, 4000.0, 20500.0)
    """
    block_bits = format_.block_bits
    if block_bits == 0 or message_bits == 0:
        return message_bits * messages
    granted_bits, grant_bits = message_bits, format_.grant_bits or block_bits
    if message_bits < SHORT_GRANTS * grant_bits:
        granted_bits = math.ceil(message_bits / grant_bits) * grant_bits
    sent_bits = granted_bits * messages
    if format_.block_errors == 0:
        return sent_bits
    assert rng is not None
    blocks = messages * math.ceil(message_bits / block_bits)
    again = int(rng.negative_binomial(blocks, 1.0 - format_.block_errors))
    return sent_bits + again * min(block_bits, granted_bits)
