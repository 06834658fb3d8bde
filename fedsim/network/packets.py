"""A message is cut into packets; each has a header and is sent again until it arrives or tries run out.

Packets are lost independently with a fixed probability, and every allowed attempt of every packet is made. The number
of packets that need an attempt more is binomial, so the law is exact at a cost of one draw per attempt, not per
packet. Ignores acknowledgements, back-off and bursts of losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Interval

from fedsim.settings import AtLeastOne, NonNegative, Probability, Settings

__all__ = ["Attempted", "Loss", "Transport", "put_on_link"]


MOST_ATTEMPTS = 10_000
"""Of one packet, each of which is a draw. NB-IoT repeats a transmission 2,048 times at most (downlink, Release 13)."""


class Transport(Settings):
    """How messages are cut into packets. By default a message is one packet without a header."""

    payload_bytes: AtLeastOne | None = None
    """Bytes of the message in one packet; absent: the whole message is one packet."""
    header_bytes: NonNegative = 0.0
    """Bytes in front of each packet, sent again with it (TCP/IPv4 without options: 40, RFC 9293 and RFC 791)."""


class Loss(Settings):
    """Random loss of packets on one kind of link. By default nothing is lost."""

    probability: Probability = 0.0
    """Chance that one attempt of one packet is lost, independent of everything else."""
    attempts: Annotated[int, Interval(ge=1, le=MOST_ATTEMPTS)] = 8
    """How often a packet is tried at most; when the last try of any packet fails, the transfer is lost."""


@dataclass(frozen=True, slots=True)
class Attempted:
    """What crossing one hop takes: ``bytes`` includes headers and every attempt."""

    bytes: float
    retransmitted_bytes: float
    delivered: bool


def put_on_link(
    size_bytes: float, transport: Transport, loss: Loss, rng: np.random.Generator | None, messages: int = 1
) -> Attempted:
    """Bytes on the link for so many *messages* of *size_bytes*. *rng* may be None only when nothing can be lost.

    >>> put_on_link(3_000, Transport(payload_bytes=1_460, header_bytes=40), Loss(), None)
    Attempted(bytes=3120.0, retransmitted_bytes=0.0, delivered=True)
    >>> put_on_link(3_000, Transport(payload_bytes=1_460, header_bytes=40), Loss(), None, messages=10).bytes
    31200.0
    """
    if transport.payload_bytes is None and loss.probability == 0.0:
        return Attempted(messages * (size_bytes + transport.header_bytes), 0.0, True)
    whole = 0 if transport.payload_bytes is None else math.floor(size_bytes / transport.payload_bytes)
    rest_bytes = size_bytes - (whole * transport.payload_bytes if transport.payload_bytes is not None else 0.0)
    kinds = []  # (how many packets, bytes of each on the link)
    if whole and transport.payload_bytes is not None:
        kinds.append((messages * whole, transport.payload_bytes + transport.header_bytes))
    if rest_bytes > 0 or not whole:
        kinds.append((messages, rest_bytes + transport.header_bytes))
    first_bytes = math.fsum(count * packet_bytes for count, packet_bytes in kinds)
    if loss.probability == 0.0:
        return Attempted(first_bytes, 0.0, True)
    assert rng is not None
    again_bytes, delivered = 0.0, True
    for count, packet_bytes in kinds:
        missing = int(rng.binomial(count, loss.probability))
        for _ in range(loss.attempts - 1):
            if not missing:
                break
            again_bytes += missing * packet_bytes
            missing = int(rng.binomial(missing, loss.probability))
        delivered = delivered and not missing
    return Attempted(first_bytes + again_bytes, again_bytes, delivered)
