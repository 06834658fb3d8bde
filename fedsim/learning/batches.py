"""Which samples a client trains on, and in which order: a function of its samples and of one named stream."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from fedsim.data.dataset import FederatedDataset

__all__ = ["POOL", "batches", "training_samples"]

POOL = -1
"""The "client" that holds everybody's samples: what the cloud trains on when raw samples were sent to it."""


def training_samples(dataset: FederatedDataset, client: int) -> npt.NDArray[np.int64]:
    """The ids of a client's training samples; of `POOL`, everybody's, in the order of clients."""
    return np.concatenate(dataset.train_ids) if client == POOL else dataset.train_ids[client]


def batches(
    sample_ids: npt.NDArray[np.int64], *, batch_size: int, epochs: int, rng: np.random.Generator
) -> Iterator[npt.NDArray[np.int64]]:
    """Mini-batches of sample ids: each epoch is one new permutation, and its last batch may be smaller.

    >>> rng = np.random.default_rng(0)
    >>> [len(batch) for batch in batches(np.arange(7), batch_size=3, epochs=2, rng=rng)]
    [3, 3, 1, 3, 3, 1]
    """
    for _ in range(epochs):
        shuffled = sample_ids[rng.permutation(len(sample_ids))]
        for first in range(0, len(shuffled), batch_size):
            yield shuffled[first : first + batch_size]
