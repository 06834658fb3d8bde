"""What a cohort is: who takes part in which round, alone or in groups that train one model in sequence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Any, ClassVar

from simpy import Event

from fedsim.protocols.block import BlockRound
from fedsim.protocols.site import Site
from fedsim.protocols.world import Client, World
from fedsim.settings import Component

__all__ = ["Cohort", "Draw", "Group"]

Group = Sequence[Client]
"""Clients that train one model in sequence, in their order."""


class Draw(ABC):
    """The cohorts of one run, one after the other."""

    @abstractmethod
    def groups(self, world: World, at: BlockRound) -> Generator[Event, Any, Sequence[Group]]:
        """The groups of a round, in the order in which they are asked; waits until there can be some."""

    def enough(self, world: World) -> int | None:
        """How many groups' updates end a round; None: all."""
        return None

    def at_station(
        self, site: Site, station: int, members: Sequence[Client], at: BlockRound, deadline_s: float | None
    ) -> Generator[Event, Any, Sequence[Client]]:
        """Of *members*, who can take part in an iteration at their *site*, those who do: as a rule, all.

        *station* is the site's number, and ``at.offset`` that of the iteration in its round. No message to the station
        is waited for longer than *deadline_s* (None: without end).
        """
        yield from ()
        return members


class Cohort(Component):
    """Registered under "cohorts"."""

    steady: ClassVar[bool] = True
    """Whether all rounds take about as many clients in the same way."""
    in_sequence: ClassVar[bool] = False
    """Whether clients come in groups, whose members train one model one after the other."""

    def check_schedule(self, station_size: int | None) -> None:
        """Raise `Misfit` when it does not fit a schedule whose clients are asked by the cloud (None), or by stations.

        *station_size* is how many clients a station may come to have.
        """
        return

    @abstractmethod
    def begin(self, deadline_s: float | None) -> Draw:
        """A run begins, in which no message to the cloud is waited for longer than *deadline_s* (None: without end)."""

    def check(self, world: World) -> None:
        """Raise `UserError` when it cannot be drawn in *world*."""
        return

    @abstractmethod
    def mean_size(self, clients: int) -> float:
        """Clients per round before rounding, of so many *clients*: the papers' kappa K."""

    def messages_at_stations(self, clients: int, stations: int) -> tuple[float, float]:
        """In an iteration of all *stations*, with so many *clients* together: (clients that train, reports before).

        As a rule the cohort of the round trains, and nobody reports anything.
        """
        return self.mean_size(clients), 0.0

    def groups_by_counts(self, clients: int, rounds: int, interval: int) -> tuple[int, ...]:
        """How many groups are formed by the class counts of *clients* in each of so many *rounds*; 0 where none are.

        That takes long for thousands of clients. Blocks have *interval* rounds.
        """
        return (0,) * rounds

    def group_numbers(self, clients: int, rounds: int, interval: int) -> tuple[int, ...]:
        """f(r): how many groups *clients* form in each of so many *rounds*, idle ones included.

        As a rule each client is a group of its own. Blocks have *interval* rounds.
        """
        return (clients,) * rounds
