"""Rounds come in blocks: those who take part in the first round of a block take part in all of it."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Alternation", "BlockRound"]


class BlockRound(NamedTuple):
    """A round, and where it stands in its block.

    >>> [BlockRound.of(number, interval=3) for number in (1, 3, 4)]
    [BlockRound(number=1, block=1, offset=0, interval=3), BlockRound(number=3, block=1, offset=2, interval=3), \
BlockRound(number=4, block=2, offset=0, interval=3)]
    """

    number: int
    """From 1, over the whole run."""
    block: int
    """Number of its block, from 1."""
    offset: int
    """Rounds of the block before it."""
    interval: int
    """Rounds in a block."""

    @classmethod
    def of(cls, number: int, *, interval: int) -> BlockRound:
        """The place of round *number*."""
        return cls(number, (number - 1) // interval + 1, (number - 1) % interval, interval)

    @property
    def first(self) -> bool:
        """Whether it begins its block."""
        return self.offset == 0

    @property
    def last(self) -> bool:
        """Whether it ends its block."""
        return self.offset == self.interval - 1


class Alternation(NamedTuple):
    """In which rounds the whole model is sent, and what is sent in the others."""

    interval: int = 1
    """T: rounds in a block, of which the first alone sends the whole model, and scatters its mean; 1: every round
    sends the whole model, and nothing is scattered."""
    calibration_bytes: float = 0.0
    """What goes to each client, and comes back, in the other rounds."""
