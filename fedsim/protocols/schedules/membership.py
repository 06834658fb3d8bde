"""Which station each client belongs to: the one that it is attached to, until it moves."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from fedsim.network.attachment import Backbone
from fedsim.protocols.world import Client, World

__all__ = ["Membership"]


class Membership:
    """The stations, numbered in the order of their first clients, and who belongs to which."""

    def __init__(self, world: World, move_share: float) -> None:
        """*move_share* of all clients, rounded down, move when a round begins."""
        self._streams, self._moving = world.streams, math.floor(move_share * len(world.clients) + 1e-9)
        numbers: dict[Backbone, int] = {}
        self._station_of = [numbers.setdefault(client.attachment.backbone, len(numbers)) for client in world.clients]
        self.backbones = tuple(numbers)

    @property
    def moves(self) -> bool:
        """Whether anybody ever moves."""
        return self._moving > 0 and len(self.backbones) > 1

    @property
    def largest(self) -> int:
        """How many members the station with most of them has."""
        return max(Counter(self._station_of).values())

    def of_round(self, round_number: int, clients: Sequence[Client]) -> dict[int, list[Client]]:
        """The members of each station among *clients*, in the order of clients; stations without any are left out.

        It is asked once in each round: somebody moves each time.
        """
        self._move(round_number)
        homes = defaultdict[int, list[Client]](list)
        for client in sorted(clients, key=lambda client: client.index):
            homes[self._station_of[client.index]].append(client)
        return dict(sorted(homes.items()))

    def _move(self, round_number: int) -> None:
        """Some go each to one of the other stations."""
        if not self.moves:
            return
        others = len(self.backbones) - 1
        rng = self._streams("membership", 0, round_number).generator()
        for index in sorted(rng.permutation(len(self._station_of))[: self._moving].tolist()):
            number = int(rng.integers(others))
            self._station_of[index] = number + (number >= self._station_of[index])
