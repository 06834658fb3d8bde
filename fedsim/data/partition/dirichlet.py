"""Clients that see some classes often and others hardly, or see it for unequally long: Dirichlet skews.

Label skew: per class, shares over the clients are Dirichlet-distributed (Yurochkin et al., ICML 2019); with the
capacity rule of NIID-Bench (Li et al., *Federated Learning on Non-IID Data Silos: An Experimental Study*, ICDE 2022,
and its code). Quantity skew: its section IV-D.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.partition.settings import (
    Concentration,
    Labels,
    PartitionSettings,
    dealt_by_class,
    draw_until_enough,
    require_minimum,
    whole_shares,
)
from fedsim.data.raw_dataset import Clients
from fedsim.settings import Count

__all__ = ["Dirichlet", "QuantitySkew"]


class Dirichlet(PartitionSettings):
    """Label skew: the shares of each class over the clients are Dirichlet-distributed (NIID-Bench).

    Class by class, in the order of the labels, p ~ Dir(alpha, ..., alpha) over n clients says which share of the
    class each one gets: mean 1/n, variance (1/n)(1 - 1/n) / (n alpha + 1).

    With the capacity rule a client that already holds N/n of the N samples or more gets nothing of the classes that
    follow. NIID-Bench sets its share to 0 and rescales the others; these are then Dir(alpha, ..., alpha) among
    themselves, which is what is drawn here. The rule evens out the sizes, and makes the last classes more concentrated
    than the first. All is drawn again until everybody has the minimum.
    """

    name: Literal["dirichlet"] = "dirichlet"
    alpha: Concentration = 0.5
    """Concentration: the smaller, the fewer clients share a class. NIID-Bench uses 0.5."""
    minimum_samples: Count = 1
    """All is drawn again until every client has so many. NIID-Bench uses 10."""
    capacity_rule: bool = True
    """Whether a client with N/n samples or more gets nothing of the classes that follow."""

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Raises `UserError` when no draw gives everybody the minimum."""
        y, total = labels.classes(), clients.total
        require_minimum(self.minimum_samples, total, len(y))
        sizes = np.unique(y, return_counts=True)[1]
        law = f"{self.name} with alpha={self.alpha:g}"
        counts = draw_until_enough(lambda: self._counts(sizes, total, rng), self.minimum_samples, law)
        return dealt_by_class(y, counts, rng)

    def _counts(self, sizes: NDArray[np.int64], clients: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(classes, clients) samples of each class for each client, for classes of *sizes*."""
        counts = np.zeros((len(sizes), clients), np.int64)
        held = np.zeros(clients, np.int64)
        for shares, size in zip(counts, sizes, strict=True):
            takers = np.flatnonzero(held * clients < sizes.sum()) if self.capacity_rule else np.arange(clients)
            shares[takers] = whole_shares(rng.dirichlet(np.full(len(takers), self.alpha)), size, rng)
            held += shares
        return counts


class QuantitySkew(PartitionSettings):
    """Unequal amounts, equal mixtures: sizes are Dirichlet-distributed over the clients, labels are random.

    Shares q ~ Dir(alpha, ..., alpha), so that a client's share of N samples has mean 1/n and variance
    (1/n)(1 - 1/n) / (n alpha + 1) for n clients; q is drawn again until everybody has the minimum.
    """

    name: Literal["quantity_skew"] = "quantity_skew"
    alpha: Concentration = 0.5
    """Concentration: the smaller, the more unequal. NIID-Bench uses 0.5."""
    minimum_samples: Count = 1
    """Sizes are drawn again until every client has so many. NIID-Bench uses 10."""

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Raises `UserError` when no draw gives everybody the minimum."""
        samples = len(labels.y)
        require_minimum(self.minimum_samples, clients.total, samples)
        alpha, law = np.full(clients.total, self.alpha), f"{self.name} with alpha={self.alpha:g}"
        sizes = draw_until_enough(
            lambda: whole_shares(rng.dirichlet(alpha), samples, rng)[None], self.minimum_samples, law
        )
        return rng.permutation(np.repeat(np.arange(clients.total), sizes[0]))
