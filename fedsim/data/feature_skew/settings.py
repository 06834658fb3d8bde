"""A feature skew changes what clients measure, each in its own way; who holds which samples stays as it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.settings import Component

__all__ = ["By", "FeatureSkewSettings", "as_stored", "numbered", "portions"]

By = Literal["client", "factory"]

AT_ONCE = 10_000  # samples: results do not depend on it, memory does


class FeatureSkewSettings(Component):
    """Base of what is registered under "feature_skews"."""

    @abstractmethod
    def apply(
        self, raw: RawDataset, clients: Clients, held: Sequence[NDArray[np.int64]], rng: np.random.Generator
    ) -> NDArray[Any]:
        """New ``x``, stored as *raw* stores it, in which the samples that each of ``clients.total`` holds are skewed.

        Samples that nobody holds stay as they are. Raises `UserError` when such samples cannot be skewed so.
        """


def numbered(clients: Clients, by: By) -> tuple[NDArray[np.int64], int]:
    """(``clients.total``,) the number of each one's *client* or *factory*, from 0, and how many there are.

    Unseen clients measure as those who take part do: m of them count as clients evenly chosen from n, unseen client j
    as client floor((j + 1/2) n / m).

    >>> numbered(Clients(4, unseen=2), "client")
    (array([0, 1, 2, 3, 1, 3]), 4)
    >>> numbered(Clients(4, np.array([0, 0, 1, 1]), unseen=1), "factory")
    (array([0, 0, 1, 1, 0]), 2)
    """
    if by == "factory":
        return clients.all_factories, int(clients.factory.max()) + 1
    unseen = (2 * np.arange(clients.unseen) + 1) * clients.count // (2 * max(clients.unseen, 1))
    return np.concatenate([np.arange(clients.count), unseen]), clients.count


def portions(ids: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """*ids* in their order, so few at once that memory hardly grows."""
    for begin in range(0, len(ids), AT_ONCE):
        yield ids[begin : begin + AT_ONCE]


def as_stored(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """*values* as *dtype* holds them: whole numbers are the nearest ones, up to the smallest and the largest.

    >>> as_stored(np.array([-3.0, 1.6, 300.0]), np.dtype(np.uint8)).tolist()
    [0, 2, 255]
    """
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        values = np.clip(np.rint(values), limits.min, limits.max)
    return values.astype(dtype)
