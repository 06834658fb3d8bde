"""Which samples a client trains on, and in which order: a function of its samples and of named random streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from fedsim.data.captures import Capture, DriftOfSamples, capture_samples, changes_to_samples
from fedsim.data.dataset import POOL, FederatedDataset
from fedsim.data.held_back import holding_back
from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.joint_steps import SeenTogether, joint_mini_batches
from fedsim.learning.training import TrainingSettings

__all__ = [
    "POOL",
    "BatchSizes",
    "Seen",
    "SeenPartly",
    "batches",
    "mini_batches",
    "samples_seen",
    "training_samples",
]


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


@dataclass(frozen=True)
class Seen:
    """Which samples of a client a node sees: what its key has to hold of them."""

    data: str
    """The data set's digest."""
    client: int
    """Or `POOL`."""
    samples: int
    capture: Capture | None = None
    """Where they stand in the client's stream; None: they are all of its own."""
    augmentation: Mapping[str, Any] | None = None
    """What a stream does to its samples."""
    drift_strength: DriftOfSamples | None = None
    """How what it sees drifts."""

    @classmethod
    def of(cls, dataset: FederatedDataset, client: int, capture: Capture | None = None) -> Seen:
        """A *capture* of the client's stream; None: all training samples of its own."""
        if capture is None:
            seen = cls(dataset.digest, client, len(training_samples(dataset, client)))
        else:
            seen = cls(dataset.digest, client, capture.samples, capture, *changes_to_samples(dataset))
        return SeenPartly(**vars(seen), held_back=dataset.held_back) if dataset.held_back else seen

    def of_it(self, dataset: FederatedDataset, seed: int) -> FederatedDataset:
        """The *dataset*, as the client has it on that *seed*."""
        return dataset


@dataclass(frozen=True)
class SeenPartly(Seen):
    """The same where clients hold some of their samples back."""

    held_back: int = 0
    """As it is asked of `fedsim.data.held_back.holding_back`."""

    def of_it(self, dataset: FederatedDataset, seed: int) -> FederatedDataset:
        """Without what is held back."""
        return holding_back(dataset, self.held_back, seed)


def samples_seen(dataset: FederatedDataset, seen: Seen, streams: Streams) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Decoded samples and labels, in the order in which they came."""
    own = seen.of_it(dataset, streams.seed)
    assert own.y is not None
    if seen.capture is not None:
        return capture_samples(own, seen.client, seen.capture, streams)
    ids = training_samples(own, seen.client)
    return own.samples(ids), own.y[ids]


def mini_batches(
    dataset: FederatedDataset, seen: Seen | SeenTogether, training: TrainingSettings, stream: Stream
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Decoded samples and labels (or values) of each mini-batch of a training.

    *stream* is the node's own random stream; what a capture draws beside it comes from others of the same seed.
    """
    if isinstance(seen, SeenTogether):
        yield from joint_mini_batches(dataset, seen, Streams(stream.seed))
        return
    order = partial(batches, batch_size=training.batch_size, epochs=training.epochs, rng=stream.generator())
    y = dataset.y
    assert y is not None
    if seen.capture is None:
        for ids in order(training_samples(seen.of_it(dataset, stream.seed), seen.client)):
            yield dataset.samples(ids), y[ids]
        return
    x, y = samples_seen(dataset, seen, Streams(stream.seed))
    for rows in order(np.arange(len(y))):
        yield x[rows], y[rows]
