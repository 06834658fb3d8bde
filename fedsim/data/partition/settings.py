"""A partition says which client gets each sample; what all partitions share is here.

Each one only names the client of each sample, so that disjoint, covering and ordered shares need no proof of their own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.data.raw_dataset import Clients
from fedsim.errors import Misfit
from fedsim.settings import Component

__all__ = [
    "NOBODY",
    "Concentration",
    "Labels",
    "PartitionSettings",
    "dealt_by_class",
    "draw_until_enough",
    "most_draws",
    "require",
    "require_minimum",
    "whole_shares",
]

Concentration = Annotated[float, Interval(gt=0, le=1e6)]
"""Parameter of a symmetric Dirichlet distribution: 1e6 is as good as equal shares, near 0 one client takes all."""

MAXIMUM_DRAWS = 1000
MOST_NUMBERS = 50_000_000
"""In all draws together: a hundred thousand clients and ten classes are drawn 50 times."""

NOBODY = -1
"""In the place of a client, for a sample that is left out."""


@dataclass(frozen=True, eq=False)
class Labels:
    """What a partition may look at."""

    y: NDArray[Any]
    """(samples,) int64 labels, or float32 values."""
    owner: NDArray[np.int64] | None = None
    """(samples,) who made each sample, by the source; None when it does not say."""
    owners_are_clients: bool = False
    """Whether owner k is client k: the samples were made for these clients, in their order."""
    owner_names: tuple[str, ...] = ()
    """What each owner is called, if the source tells it."""
    fleets: tuple[str, ...] = ()
    """The fleet of each owner, if the source puts owners together."""

    def classes(self) -> NDArray[np.int64]:
        """(samples,) the labels. Raises `UserError` for values: there are no classes to spread."""
        if self.y.dtype != np.int64:
            raise Misfit(
                "this partition is by class, and the data set has numbers to predict (regression); use natural, iid or "
                "quantity_skew",
                "partition",
            )
        return self.y


class PartitionSettings(Component):
    """Base of what is registered under "partitions"."""

    natural: ClassVar[bool] = False
    """Whether it keeps together what one owner made; then tests are taken from the shares, not before."""

    @abstractmethod
    def deal(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> NDArray[np.int64]:
        """(samples,) the client, below ``clients.total``, that gets each sample, or `NOBODY`; all get one or more."""

    def split(self, labels: Labels, clients: Clients, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Positions into the labels for each client: ascending, disjoint, and never empty.

        Raises `UserError` when there are too few samples for so many clients.
        """
        samples = len(labels.y)
        who = f"{clients.total} clients" + (f", {clients.unseen} unseen ones among them," if clients.unseen else "")
        require(clients.total, samples, f"each of {who} needs one; use fewer clients or more data")
        owner = self.deal(labels, clients, rng)
        positions = np.argsort(owner, kind="stable")[np.count_nonzero(owner == NOBODY) :]
        ends = np.cumsum(np.bincount(owner[positions], minlength=clients.total))
        return np.split(positions, ends[:-1])


def require(needed: int, samples: int, why: str) -> None:
    """Raise `UserError` unless *needed* samples are among *samples*; *why* says the rule and the way out."""
    if needed > samples:
        raise Misfit(f"{needed} training samples are needed, but there are only {samples}: {why}", "partition")


def require_minimum(minimum: int, clients: int, samples: int) -> None:
    """Raise `UserError` unless *samples* can give each of *clients* the *minimum*."""
    rule = f"minimum_samples={minimum} for each of {clients} clients; lower it, or use fewer clients"
    require(minimum * clients, samples, rule)


def whole_shares(proportions: NDArray[np.float64], total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(clients,) whole numbers that add up to *total*, on average *total* times *proportions*, and within 1 of that.

    Cumulative shares are rounded down after one common random offset in [0, 1) was added (systematic sampling;
    W. G. Madow, Annals of Mathematical Statistics, 1949), so that rounding favours no client, first or last.

    >>> whole_shares(np.array([0.5, 0.3, 0.2]), 10, np.random.default_rng(1)).tolist()
    [5, 3, 2]
    """
    ends = np.floor(np.cumsum(proportions) * total + rng.random())
    ends[-1] = total  # the sum of the proportions may miss 1 by a rounding error
    return np.diff(np.minimum(ends, total), prepend=0).astype(np.int64)


def dealt_by_class(y: NDArray[np.int64], counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """(samples,) clients, by (present classes, clients) *counts* of them; which samples of a class is left to chance.

    Row c of *counts* belongs to the c-th of the labels that are present, in ascending order, and adds up to its number.
    """
    owner = np.empty(len(y), np.int64)
    for label, shares in zip(np.unique(y), counts, strict=True):
        owner[y == label] = rng.permutation(np.repeat(np.arange(counts.shape[1]), shares))
    return owner


def most_draws(numbers: int) -> int:
    """How many draws of so many *numbers* are tried: a refusal comes in seconds however many clients there are.

    >>> most_draws(10 * 100), most_draws(10 * 100_000)
    (1000, 50)
    """
    return min(max(MOST_NUMBERS // numbers, 1), MAXIMUM_DRAWS)


def draw_until_enough(draw: Callable[[], NDArray[np.int64]], minimum: int, law: str) -> NDArray[np.int64]:
    """The first (parts, clients) draw in which every client has *minimum* samples or more over all parts.

    Raises `UserError`, which begins with the *law* of the draws, when `most_draws` draws have none.
    """
    draws = 0
    while True:
        counts = draw()
        draws += 1
        if counts.sum(axis=0).min() >= minimum:
            return counts
        if draws == most_draws(counts.size):
            break
    raise Misfit(
        f"{law} left some of {counts.shape[1]} clients with fewer than "
        f"minimum_samples={minimum} of {counts.sum()} training samples in each of {draws} draws; "
        "raise alpha, lower minimum_samples, or use fewer clients",
        "partition",
    )
