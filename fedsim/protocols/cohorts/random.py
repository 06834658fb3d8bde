"""Who takes part in a round: uniformly at random among those who can be reached and are free.

(Uniform selection: McMahan et al., AISTATS 2017.)

The draw comes from the stream of the round, so protocols on one seed choose alike as long as the same devices are free.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator
from typing import Any, Literal, Self

from pydantic import model_validator
from simpy import Event

from fedsim.errors import Misfit
from fedsim.kernel.gather import at_the_end_of, give_up
from fedsim.network.faults.outages import Fate
from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.cohort import Cohort, Draw, Group
from fedsim.protocols.run_loop import NobodyLeft
from fedsim.protocols.world import Client, World
from fedsim.settings import Count, Fraction, Positive, Settings

__all__ = ["CohortSettings", "RandomCohort", "eligible_clients"]


class CohortSettings(Settings):
    """How large the cohort of a round is, and how it is drawn."""

    fraction: Fraction | None = None
    """Share of all clients in each round, rounded down, at least one; or give ``clients``."""
    clients: Count | None = None
    """Number of clients in each round; or give ``fraction``."""
    over_selection: Positive = 1.0
    """Ask this many times more clients (rounded up); the round ends when the cohort's size has arrived."""
    busy: Literal["skip", "abort"] = "skip"
    """Devices still busy with an earlier round: pass over them, or let them be chosen and give up what they do."""

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.fraction is None) == (self.clients is None):
            given = "nothing" if self.clients is None else f"fraction={self.fraction} and clients={self.clients}"
            raise ValueError(f"give either fraction or clients, one of them and not both; {given} is given")
        if self.over_selection < 1:
            raise Misfit(f"over_selection={self.over_selection} must be at least 1", "over_selection")
        return self

    def mean_size(self, clients: int) -> float:
        """Clients per round before rounding: ``fraction * clients``, the papers' kappa K.

        >>> round(CohortSettings(fraction=0.3).mean_size(368), 9)
        110.4
        """
        if self.clients is not None:
            return float(self.clients)
        assert self.fraction is not None
        return self.fraction * clients

    def size(self, clients: int) -> int:
        """Clients per round.

        >>> CohortSettings(fraction=0.3).size(368), CohortSettings(fraction=0.001).size(368)
        (110, 1)
        """
        return max(1, math.floor(self.mean_size(clients) + 1e-9))

    def asked(self, clients: int) -> int:
        """Clients that are asked in each round, of whom only `size` are waited for.

        >>> CohortSettings(clients=10, over_selection=1.3).asked(100)
        13
        """
        return min(clients, math.ceil(self.size(clients) * self.over_selection - 1e-9))


class RandomCohort(CohortSettings, Cohort):
    """Clients on their own, drawn at random when a block begins."""

    name: Literal["random"] = "random"

    def check_schedule(self, station_size: int | None) -> None:
        """A station does not know how many others have."""
        if station_size is not None and self.over_selection != 1:
            problem = f"over_selection={self.over_selection:g} is for a cloud that counts who has answered"
            raise Misfit(
                f"{problem}, and here stations wait for all whom they have asked; leave it out", "over_selection"
            )

    def begin(self, deadline_s: float | None) -> Draw:
        """Nobody is chosen yet."""
        return _RandomDraw(self)


class _RandomDraw(Draw):
    def __init__(self, settings: CohortSettings) -> None:
        self._settings = settings
        self._chosen: list[Client] = []

    def groups(self, world: World, at: BlockRound) -> Generator[Event, Any, list[Group]]:
        """The clients of a round, in the order in which they were drawn; waits until at least one can be chosen.

        The cloud asks them in this order, so that nobody is always first or last on the air. A client that is asked
        while busy gives up what it does, if the scenario says so.
        """
        abort = self._settings.busy == "abort"
        if at.first:
            eligible = yield from eligible_clients(world, even_if_busy=abort)
            asked = min(len(eligible), self._settings.asked(len(world.clients)))
            rng = world.streams("selection", 0, at.number).generator()
            self._chosen = [eligible[position] for position in rng.permutation(len(eligible))[:asked]]
        if abort:
            give_up((client.journey for client in self._chosen), "asked again")
        return [(client,) for client in self._chosen]

    def enough(self, world: World) -> int:
        """The size of the cohort, of whom more may have been asked."""
        return self._settings.size(len(world.clients))


def eligible_clients(world: World, *, even_if_busy: bool = False) -> Generator[Event, Any, list[Client]]:
    """Those who can be reached and are free; waits until there is one.

    Raises `NobodyLeft` when there can never be one again.
    """
    while True:
        yield at_the_end_of(world.env, 0.0)  # who is freed in this instant is free
        clients = world.asked
        eligible = [client for client in clients if client.attachment.reachable and (even_if_busy or not client.busy)]
        if eligible:
            return eligible
        _check_that_somebody_may_be_free(world)
        yield from world.until_changed()


def _check_that_somebody_may_be_free(world: World) -> None:
    """Raise `NobodyLeft` unless a journey may end, or somebody may be reachable again."""
    clients, fate_of = world.asked, world.outages.fate
    if not any(client.busy for client in clients) and all(fate_of(client.attachment) for client in clients):
        fates = Counter(fate_of(client.attachment) for client in clients)
        counts = ", ".join(f"{fates[fate]} {fate}" for fate in Fate if fates[fate])
        raise NobodyLeft(f"no device can ever be reached again ({counts})")
