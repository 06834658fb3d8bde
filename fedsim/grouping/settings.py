"""What every way to form groups has in common, and the plainest one, by chance.

There are M groups of L = floor(K / M) clients, and fewer than M clients are left over, K - L M, so a group takes one of
them at most (constraint 3 of HFedMS: no group is larger than ceil(K / M)). Random groups are what ICG is compared with,
NaiveGSP in FedGSP (Zeng et al., DASFAA 2022).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.settings import Component

__all__ = ["GroupingSettings", "Members", "RandomGroups"]

Members = NDArray[np.int64]
"""Positions of clients: rows of their table of counts."""


class GroupingSettings(Component):
    """Base of what is registered under "groupings"."""

    needs_counts: ClassVar[bool]
    """Whether clients have to report how many samples of each class they hold."""

    leftover: Literal["idle", "spread"] = "idle"
    """Clients that equal groups have no place for: they sit out, or go to one group each."""
    once: bool
    """Whether groups are formed only once, at the start of a run."""

    def groups(self, counts: NDArray[Any], number: int, rng: np.random.Generator) -> list[Members]:
        """*number* groups of clients, each in the order in which its members train.

        *counts*, (clients, classes), says how many samples of each class a client holds; without ``needs_counts`` only
        its length matters. Raises `ValueError` unless *number* is from 1 to the number of clients.
        """
        clients = len(counts)
        if not 1 <= number <= clients:
            raise ValueError(f"{number} groups of {clients} clients: the number must be from 1 to {clients}")
        equal = self.equal_groups(counts, number, rng)
        rest = np.setdiff1d(np.arange(clients), equal) if self.leftover == "spread" else np.empty(0, np.int64)
        dealt = rng.permutation(rest)
        return [rng.permutation(np.append(group, dealt[m : m + 1])) for m, group in enumerate(equal)]

    @abstractmethod
    def equal_groups(self, counts: NDArray[Any], number: int, rng: np.random.Generator) -> Members:
        """(number, clients // number) members of each group; nobody is in two."""


class RandomGroups(GroupingSettings):
    """Random groups of equal size, whatever the clients hold."""

    needs_counts: ClassVar[bool] = False

    name: Literal["random"] = "random"
    once: bool = True
    """Whether groups are formed only once, at the start of a run, as in NaiveGSP."""

    def equal_groups(self, counts: NDArray[Any], number: int, rng: np.random.Generator) -> Members:
        """A random order of all clients, cut into pieces."""
        clients = len(counts)
        length = clients // number
        return rng.permutation(clients)[: length * number].reshape(number, length)
