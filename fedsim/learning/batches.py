"""Which samples a client trains on, and in which order: a function of its samples and of named random streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsim.data.dataset import FederatedDataset
from fedsim.data.stream.captures import Capture, capture_samples
from fedsim.kernel.streams import Stream, Streams

__all__ = [
    "POOL",
    "BatchSizes",
    "batch_sizes",
    "batches",
    "mini_batches",
    "samples_of",
    "samples_seen",
    "stream_parameters",
    "training_samples",
]

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


@dataclass(frozen=True)
class BatchSizes:
    """How many samples are in each mini-batch of a training, one after the other; none of them is listed ahead.

    >>> list(BatchSizes(samples=7, batch_size=3, epochs=2))
    [3, 3, 1, 3, 3, 1]
    >>> BatchSizes(samples=7, batch_size=3, epochs=10**9).steps
    3000000000
    """

    samples: int
    batch_size: int
    epochs: int

    def __iter__(self) -> Iterator[int]:
        whole, rest = divmod(self.samples, self.batch_size)
        for _ in range(self.epochs):
            yield from repeat(self.batch_size, whole)
            if rest:
                yield rest

    @property
    def steps(self) -> int:
        """How many mini-batches there are."""
        return self.epochs * -(-self.samples // self.batch_size)

    @property
    def largest(self) -> int:
        """Samples of the largest mini-batch."""
        return min(self.samples, self.batch_size)

    @property
    def total(self) -> int:
        """Samples of all mini-batches together."""
        return self.epochs * self.samples


def samples_of(dataset: FederatedDataset, parameters: Mapping[str, Any]) -> int:
    """How many samples a node with these *parameters* sees."""
    if "capture" in parameters:
        return Capture(*parameters["capture"]).samples
    return len(training_samples(dataset, parameters["client"]))


def batch_sizes(dataset: FederatedDataset, parameters: Mapping[str, Any]) -> BatchSizes:
    """The sizes of the mini-batches of a training with these *parameters* of its node."""
    samples = parameters["rows"] if "rows" in parameters else samples_of(dataset, parameters)
    training = parameters["training"]
    return BatchSizes(samples, training["batch_size"], training["epochs"])


def stream_parameters(dataset: FederatedDataset, capture: Capture) -> dict[str, Any]:
    """What a training's key has to hold when it sees a capture of the client's stream."""
    assert dataset.stream is not None
    augmentation, drift = dataset.stream.augmentation, dataset.stream.drift
    return {
        "capture": [capture.first, capture.samples, capture.mixture],
        "augmentation": augmentation and augmentation.model_dump(mode="json"),
        "drift_strength": drift and drift.strength,
    }


def samples_seen(
    dataset: FederatedDataset, parameters: Mapping[str, Any], streams: Streams
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Decoded samples and labels that a node with these *parameters* sees, in the order in which they came."""
    assert dataset.y is not None
    if "capture" in parameters:
        return capture_samples(dataset, parameters["client"], Capture(*parameters["capture"]), streams)
    ids = training_samples(dataset, parameters["client"])
    return dataset.samples(ids), dataset.y[ids]


def mini_batches(
    dataset: FederatedDataset, parameters: Mapping[str, Any], stream: Stream
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Decoded samples and labels (or values) of each mini-batch of a training with these *parameters* of its node.

    *stream* is the node's own random stream; what a capture draws beside it comes from others of the same seed.
    """
    settings, client, rng = parameters["training"], parameters["client"], stream.generator()
    sizes = {"batch_size": settings["batch_size"], "epochs": settings["epochs"]}
    assert dataset.y is not None
    if "capture" not in parameters:
        for ids in batches(training_samples(dataset, client), **sizes, rng=rng):
            yield dataset.samples(ids), dataset.y[ids]
        return
    x, y = samples_seen(dataset, parameters, Streams(stream.seed))
    for rows in batches(np.arange(len(y)), **sizes, rng=rng):
        yield x[rows], y[rows]
