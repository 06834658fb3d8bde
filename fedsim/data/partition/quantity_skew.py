"""Clients that see the same world but for unequally long (Li et al., NIID-Bench, ICDE 2022, section IV-D)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.partition.settings import (
    Concentration,
    Labels,
    PartitionSettings,
    draw_until_enough,
    require_minimum,
    whole_shares,
)
from fedsim.data.raw_dataset import Clients
from fedsim.settings import Count

__all__ = ["QuantitySkew"]


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
