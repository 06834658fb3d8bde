"""When to give a run up in which things change again and again while no message comes to an end."""

from __future__ import annotations

from simpy import Environment

from fedsim.errors import UserError
from fedsim.network.network import Network

__all__ = ["MOST_CHANGES", "MOST_CHANGES_EACH", "Patience"]

MOST_CHANGES = 10_000_000
"""While nothing that was sent comes to an end."""
MOST_CHANGES_EACH = 100
"""Beside these, for each thing that changes: so many devices may all fail in a quiet hour."""


class Patience:
    """Counts changes while no message comes to an end."""

    def __init__(self, env: Environment, network: Network, what: str, way_out: str) -> None:
        self._env = env
        self._network = network
        self._what = what
        self._way_out = way_out
        self._things = 0
        self._changes = 0
        self._hops_seen = 0

    def expect(self, things: int) -> None:
        """So many more things change."""
        self._things += things

    def count_change(self) -> None:
        """Something has changed. Raises `UserError` when that has happened so often that nothing would ever end."""
        if self._network.hops_crossed != self._hops_seen:
            self._hops_seen, self._changes = self._network.hops_crossed, 0
        self._changes += 1
        most = MOST_CHANGES + MOST_CHANGES_EACH * self._things
        if self._changes > most:
            raise UserError(
                f"until {self._env.now:g} s of simulated time, {self._what} {most:,} times while no message came to an "
                f"end; {self._way_out}"
            )
