"""Clients as the source has them: a writer, a speaker, an engine, a machine."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.partition.settings import NOBODY, Labels, PartitionSettings
from fedsim.data.raw_dataset import Clients
from fedsim.errors import Misfit

__all__ = ["Natural", "told"]


class Natural(PartitionSettings):
    """Everybody keeps what is their own: the owners with most samples are the clients, in the order of the source.

    Of equal owners the one that comes first in the source goes first. Those that come next are the unseen clients;
    what all others own is left out.
    """

    name: Literal["natural"] = "natural"
    natural: ClassVar[bool] = True

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Nothing is drawn. Raises `UserError` when there are not so many owners."""
        owner = told(labels.owner)
        if labels.owners_are_clients:
            return owner
        sizes = np.bincount(owner)
        ranked = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        if len(ranked) < clients.total:
            unseen = f" and {clients.unseen} unseen ones" if clients.unseen else ""
            raise Misfit(
                f"natural has {len(ranked)} owners of samples, and {clients.count} clients{unseen} are wanted; use "
                "fewer clients, or another partition",
                "partition",
            )
        client_of = np.full(len(sizes), NOBODY)
        client_of[np.sort(ranked[: clients.count])] = np.arange(clients.count)
        client_of[ranked[clients.count : clients.total]] = np.arange(clients.count, clients.total)
        return client_of[owner]


def told(owner: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return *owner*, of each sample, when the source tells it; raise `UserError` otherwise."""
    if owner is None:
        raise Misfit(
            "natural needs to know who made each sample, and this source does not say; use another partition, such "
            "as iid or dirichlet",
            "partition",
        )
    return owner
