"""Mini-batches that several clients make together: what one training sees where a site's clients take single steps.

Each of these clients makes one step of plain SGD from the same model, on a mini-batch of its own. The mean of their
models, weighted by samples, is then one step on all these mini-batches together (FedGS: Li et al., IEEE Internet of
Things Journal 2022, Eqs. 3 and 4). So T such iterations are one training with T mini-batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fedsim.data.captures import Capture, DriftOfSamples, capture_samples, captured_ids, changes_to_samples
from fedsim.data.dataset import POOL, FederatedDataset
from fedsim.kernel.streams import Streams

__all__ = ["JointSizes", "JointStep", "Piece", "SeenTogether", "joint_ids", "joint_mini_batches"]


class Piece(NamedTuple):
    """One client's mini-batch in a step."""

    client: int
    capture: Capture


JointStep = tuple[Piece, ...]
"""The mini-batches of one step, in the order of their clients; there is one at least."""


@dataclass(frozen=True)
class JointSizes:
    """How many samples are in each mini-batch of a training, as `fedsim.learning.batches.BatchSizes` says it.

    >>> sizes = JointSizes((64, 32))
    >>> list(sizes), sizes.steps, sizes.largest, sizes.total
    ([64, 32], 2, 64, 96)
    """

    samples: tuple[int, ...]

    def __iter__(self) -> Iterator[int]:
        return iter(self.samples)

    @property
    def steps(self) -> int:
        """How many mini-batches there are."""
        return len(self.samples)

    @property
    def largest(self) -> int:
        """Samples of the largest one."""
        return max(self.samples)

    @property
    def total(self) -> int:
        """Samples of all of them."""
        return sum(self.samples)


@dataclass(frozen=True)
class SeenTogether:
    """Which samples of which clients a training sees, step by step: what its key has to hold of them."""

    client: ClassVar[int] = POOL
    data: str
    """The data set's digest."""
    steps: tuple[JointStep, ...]
    augmentation: Mapping[str, Any] | None = None
    """What a stream does to its samples."""
    drift_strength: DriftOfSamples | None = None
    """How what it sees drifts."""

    @classmethod
    def of(cls, dataset: FederatedDataset, steps: tuple[JointStep, ...]) -> SeenTogether:
        """Mini-batches of *dataset*."""
        return cls(dataset.digest, steps, *changes_to_samples(dataset))

    @cached_property
    def sizes(self) -> JointSizes:
        """How large the mini-batches are."""
        return JointSizes(tuple(sum(piece.capture.samples for piece in step) for step in self.steps))


def joint_ids(dataset: FederatedDataset, seen: SeenTogether, streams: Streams) -> Iterator[npt.NDArray[np.int64]]:
    """The ids of each mini-batch's samples; they do not tell how a stream changes them."""
    for step in seen.steps:
        yield np.concatenate([captured_ids(dataset, client, capture, streams) for client, capture in step])


def joint_mini_batches(
    dataset: FederatedDataset, seen: SeenTogether, streams: Streams
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Decoded samples and labels of each mini-batch."""
    for step in seen.steps:
        pieces = [capture_samples(dataset, client, capture, streams) for client, capture in step]
        xs, ys = zip(*pieces, strict=True)
        yield np.concatenate(xs), np.concatenate(ys)
