"""Clients as the source has them: a writer, a speaker, an engine, a machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    factories: Literal["any", "fleets"] = "any"
    """Which owners a factory has: any, in the order of the source; or those of one fleet of the source (a subset of
    cmapss) with most samples, the first fleet in the first factory. Then names count for nothing."""
    natural: ClassVar[bool] = True

    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """Nothing is drawn. Raises `UserError` when there are not so many owners, in all or in a fleet."""
        owner = told(labels.owner)
        if labels.owners_are_clients and self.factories == "any":
            return owner
        sizes = np.bincount(owner)
        ranked = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]
        client_of = np.full(len(sizes), NOBODY)
        if self.factories == "fleets":
            for factory, (fleet, members) in enumerate(_fleets(labels.fleets, ranked, clients)):
                seats = np.flatnonzero(clients.all_factories == factory)
                taking_part = seats[seats < clients.count]
                _require(members, len(taking_part), len(seats), f"fleet {fleet!r} has", " in its factory")
                client_of[np.sort(members[: len(taking_part)])] = taking_part
                client_of[members[len(taking_part) : len(seats)]] = seats[len(taking_part) :]
            return client_of[owner]
        _require(ranked, clients.count, clients.total, "natural has")
        seen = _by_name(labels.owner_names, clients.names, sizes)
        if seen is None:
            seen = np.sort(ranked[: clients.count])
        others = ranked[~np.isin(ranked, seen)]
        client_of[seen] = np.arange(clients.count)
        client_of[others[: clients.unseen]] = np.arange(clients.count, clients.total)
        return client_of[owner]


def _require(owners: NDArray[np.int64], count: int, total: int, whose: str, where: str = "") -> None:
    """Raise `Misfit` unless there are as many *owners* as clients, *total* of them with the unseen ones."""
    if len(owners) < total:
        unseen = f" and {total - count} unseen ones" if total > count else ""
        raise Misfit(
            f"{whose} {len(owners)} owners of samples, and {count} clients{unseen} are wanted{where}; use fewer "
            "clients, or another partition",
            "partition",
        )


def _fleets(
    fleets: Sequence[str], ranked: NDArray[np.int64], clients: Clients
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """The name of each fleet, in the order of the source, and its owners, those with most samples first.

    Raises `Misfit` unless there are as many factories.
    """
    key = ("partition", "factories")
    if not fleets:
        raise Misfit("fleets: this source does not say which owners belong together; leave factories out", *key)
    names = list(dict.fromkeys(fleets[owner] for owner in np.sort(ranked)))
    factories = int(clients.factory.max()) + 1
    if factories != len(names):
        raise Misfit(
            f"fleets: the source has {len(names)} ({', '.join(names)}), and the topology has {factories} factories; "
            "have as many factories as fleets, or leave factories out",
            *key,
        )
    for name in names:
        yield name, np.array([owner for owner in ranked if fleets[owner] == name])


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
