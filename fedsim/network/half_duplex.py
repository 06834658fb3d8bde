"""A half-duplex device does one thing at a time: it sends, or it receives (half-duplex FDD, TS 36.211 clause 4.1).

Messages of one direction may be on the air together. One of the other direction waits, off the air, until they have all
been received or given up; whoever comes after it waits behind it, so that nobody waits for ever. A message that waits
for coverage keeps nobody waiting. Leaves out the guard time of a switch from one direction to the other (a subframe or
two, contained in the sustained rates of the profiles), and that a device could receive while its upload waits in a
queue of the cell.
"""

from __future__ import annotations

from typing import Protocol

__all__ = ["HalfDuplex"]


class _Hop(Protocol):
    is_uplink: bool
    rate_bps: float


class _Message(Protocol):
    """A message on one of the device's two hops."""

    @property
    def hop(self) -> _Hop:
        """The hop that it is on."""

    def go_on_air(self) -> None:
        """Its turn has come."""


NOBODY: dict[_Message, None] = {}
"""Never filled: most devices of a large network do nothing most of the time, and need no memory for it."""


class HalfDuplex:
    """Whose turn it is on one device."""

    __slots__ = ("_on_air", "_waiting")

    def __init__(self) -> None:
        self._on_air = NOBODY
        """All of one direction."""
        self._waiting = NOBODY
        """In the order in which they came."""

    def takes(self, message: _Message) -> bool:
        """Whether *message* may go on the air now; if not, it is told when it may."""
        if message in self._on_air or (not self._waiting and self._fits(message)):
            self._on_air = _with(self._on_air, message)
            return True
        self._waiting = _with(self._waiting, message)
        return False

    def release(self, message: _Message) -> None:
        """*message* is through, given up or out of coverage; nothing, if it was not here."""
        self._waiting.pop(message, None)
        self._on_air.pop(message, None)
        while self._waiting and self._fits(following := next(iter(self._waiting))):
            del self._waiting[following]
            if following.hop.rate_bps > 0:  # or it is about to hear that it has lost its coverage
                self._on_air = _with(self._on_air, following)
                following.go_on_air()

    def _fits(self, message: _Message) -> bool:
        """Whether nothing is on the air, or what goes the same way."""
        return not self._on_air or next(iter(self._on_air)).hop.is_uplink == message.hop.is_uplink


def _with(some: dict[_Message, None], message: _Message) -> dict[_Message, None]:
    """*some*, with one more."""
    if some is NOBODY:
        some = {}
    some[message] = None
    return some
