"""Clients that know exactly so many classes: NIID-Bench's quantity-based label imbalance (Li et al., ICDE 2022)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.partition.settings import Labels, PartitionSettings, dealt_by_class, most_draws
from fedsim.data.raw_dataset import Clients
from fedsim.errors import Misfit
from fedsim.settings import Count

__all__ = ["ClassesPerClient"]


class ClassesPerClient(PartitionSettings):
    """Exactly so many classes per client; a class is shared evenly among those who have it (NIID-Bench, "#C = k").

    First every class finds somebody: the classes, in random order, and the clients go round together until each has
    met another one, client i mod n with class i mod K of that order. Then each client fills up to k classes with
    others, all equally likely. (NIID-Bench's code does the same, with the classes in the order of their labels.) The
    samples of a class are shared at random, sizes differ by one at most, and chance says who gets the one more. Who has
    which class is drawn again until every class has a sample for each of those who have it.
    """

    name: Literal["classes_per_client"] = "classes_per_client"
    classes: Count = 2
    """How many classes each client has, k. NIID-Bench uses 1, 2 and 3 of 10."""

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Raises `UserError` when there are not so many classes, or too few places or samples for all of them."""
        y, total = labels.classes(), clients.total
        sizes = np.unique(y, return_counts=True)[1]
        self._check(len(sizes), total)
        draws = most_draws(len(sizes) * total)
        for _ in range(draws):
            has = self._who_has_what(len(sizes), total, rng)
            if (has.sum(1) <= sizes).all():
                counts = np.array([_even(who, size, rng) for who, size in zip(has, sizes, strict=True)])
                return dealt_by_class(y, counts, rng)
        raise Misfit(
            f"classes={self.classes} for each of {total} clients gave some class to more clients than it has samples "
            f"(the smallest has {sizes.min()}) in each of {draws} draws; lower classes, or use fewer clients",
            "partition",
            "classes",
        )

    def _check(self, present: int, clients: int) -> None:
        if self.classes > present:
            raise Misfit(
                f"classes={self.classes} for each client, but the training samples have only {present}; lower it",
                "partition",
                "classes",
            )
        if self.classes * clients < present:
            raise Misfit(
                f"classes={self.classes} for each of {clients} clients leaves some of {present} classes to nobody; "
                f"raise it to {-(-present // clients)} or more, or use more clients",
                "partition",
                "classes",
            )

    def _who_has_what(self, present: int, clients: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """(classes, clients) whether a client has a class."""
        met = np.arange(max(present, clients))
        rank = rng.random((present, clients))
        rank[rng.permutation(present)[met % present], met % clients] = -1.0  # before all others
        places = np.argsort(rank, axis=0)[: self.classes]
        has = np.zeros((present, clients), np.bool_)
        np.put_along_axis(has, places, True, axis=0)
        return has


def _even(who: NDArray[np.bool_], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(clients,) *size* samples, shared evenly among those who have the class."""
    shares = np.zeros(len(who), np.int64)
    takers = rng.permutation(np.flatnonzero(who))
    shares[takers] = size // len(takers) + (np.arange(len(takers)) < size % len(takers))
    return shares
