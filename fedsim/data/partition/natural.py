"""Clients as the source has them: a writer, a speaker, an engine, a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.partition.settings import NOBODY, Labels, PartitionSettings
from fedsim.data.raw_dataset import Clients
from fedsim.errors import Misfit

__all__ = ["Natural", "told"]


class Natural(PartitionSettings):
    """Everybody keeps what is their own: the owners with most samples are the clients, in the order of the source.

    Where all sensors of the topology are called as owners, each sensor is the owner of its name instead. Of equal
    owners the one that comes first in the source goes first. Those that come next are the unseen clients; what all
    others own is left out.
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
        seen = _by_name(labels.owner_names, clients.names, sizes)
        if seen is None:
            seen = np.sort(ranked[: clients.count])
        others = ranked[~np.isin(ranked, seen)]
        client_of = np.full(len(sizes), NOBODY)
        client_of[seen] = np.arange(clients.count)
        client_of[others[: clients.unseen]] = np.arange(clients.count, clients.total)
        return client_of[owner]


def _by_name(owners: Sequence[str], clients: Sequence[str], sizes: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The owner that is called as each client; None unless each client is called as an owner of samples."""
    number = {name: position for position, name in enumerate(owners[: len(sizes)]) if sizes[position]}
    if not clients or not all(name in number for name in clients):
        return None
    return np.array([number[name] for name in clients])


def told(owner: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return *owner*, of each sample, when the source tells it; raise `UserError` otherwise."""
    if owner is None:
        raise Misfit(
            "natural needs to know who made each sample, and this source does not say; use another partition, such "
            "as iid or dirichlet",
            "partition",
        )
    return owner
