"""Who hears of a run while it goes on: a progress display, or code of the user's."""

from __future__ import annotations

from collections.abc import Sequence

from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round, Stop

__all__ = ["Observer", "Paused"]


class Paused(Exception):
    """An observer has paused a run: what it has learned is in the store, and it goes on as an interrupted one does."""


class Observer:
    """Sees nothing and says nothing; subclasses override what they want to hear."""

    def tell(self, text: str) -> None:
        """A line about all that follows: what trains, and how."""

    def begin(self, protocol: Protocol, seed: int, stop: Stop, clients: int) -> None:
        """A protocol starts on a seed, on a network of so many clients."""

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        """A round has ended, and was evaluated if it was its turn."""

    def pauses(self, done: Round) -> bool:
        """Whether the run is to be left after this round, which is not its last one, and goes on at another time."""
        return False

    def end(self, protocol: Protocol, seed: int) -> None:
        """The protocol has ended on this seed."""

    def put_off(self, protocol: Protocol, seed: int) -> None:
        """Another run in the same store trains the same: the protocol begins again on this seed when others have."""

    def waits(self, holders: Sequence[str]) -> None:
        """Other runs in the same store train all that is left; this one goes on when one of the *holders* has."""
