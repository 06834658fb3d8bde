"""Many small messages of one cell as one: for what all devices tell their base station again and again.

A bundle puts the same bytes on the air as its messages would, headers included, and uses the same airtime. On a carrier
that serves whole messages or shares its time, it takes as long as they would all together; on dedicated air, as long as
the slowest of them. Left out: losses, with which each message has luck of its own, and several carriers at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.hop import Hop

__all__ = ["bundled", "may_be_bundled"]


def may_be_bundled(hops: Sequence[Hop]) -> bool:
    """Whether nothing is lost on them nor sent in blocks, and the first one's cell has a single carrier."""
    plain = not any(hop.loss.probability or hop.format.block_bits for hop in hops)
    return plain and hops[0].link.medium.carriers == 1


def bundled(hops: Sequence[Hop]) -> Hop:
    """A hop that takes messages of one size, one for each of *hops*, as one: these lead the same way in one cell.

    Its rate is that of one message after the other, each for its share of the carrier, or of all at once.
    """
    first = hops[0]
    assert all(hop.link is first.link and hop.rate_bps > 0 for hop in hops)
    airtime = math.fsum(hop.share / hop.rate_bps for hop in hops)  # of one bit of each
    time = max(1 / hop.rate_bps for hop in hops) if isinstance(first.channel, DedicatedChannel) else airtime
    rate_bps, share = (len(hops) / time, airtime / time) if time > 0 else (math.inf, 1.0)
    return Hop(first.link, first.is_uplink, rate_bps, share=share)
