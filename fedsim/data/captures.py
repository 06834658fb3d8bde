"""What a device sees: positions on its endless stream of samples, and the samples that stand there.

A capture is a pure function of the client and of the positions: nothing depends on when, or after what, it is made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.data.dataset import FederatedDataset
from fedsim.data.stream.augment import augmented
from fedsim.kernel.streams import Streams

__all__ = ["Capture", "capture_samples", "captured_ids", "classes_seen", "phase_of_class"]


class Capture(NamedTuple):
    """So many samples of a client's stream, from a position on."""

    first: int
    """Position of the first one; a client's stream begins at 0."""
    samples: int
    """How many follow each other."""
    mixture: tuple[float, ...] | None = None
    """Share of each phase of the drift; None without one."""


def capture_samples(
    dataset: FederatedDataset, client: int, capture: Capture, streams: Streams
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The decoded samples of a capture, augmented if the data set's stream says so, and their labels or values."""
    assert dataset.y is not None and dataset.stream is not None
    ids = captured_ids(dataset, client, capture, streams)
    x = dataset.samples(ids)
    if dataset.stream.augmentation is not None:
        rng = streams("data/augmentation", client, capture.first).generator()
        x = augmented(x, dataset.stream.augmentation, rng)
    return x, dataset.y[ids]


def captured_ids(dataset: FederatedDataset, client: int, capture: Capture, streams: Streams) -> NDArray[np.int64]:
    """(capture.samples,) ids of the client's own training samples, in the order of the stream.

    Without drift the stream is pass after pass through all of them, each pass a permutation of its own. With drift
    each sample is drawn for itself, with replacement: its class group by the mixture and the strength, and then evenly
    among the client's samples of that group (among all of them, if it has none).
    """
    own = dataset.train_ids[client]
    if capture.mixture is None:
        return _passes(own, client, capture, streams)
    return _drifting(dataset, own, client, capture, streams)


def classes_seen(
    dataset: FederatedDataset, client: int, capture: Capture | None, streams: Streams
) -> NDArray[np.int64]:
    """(classes,) samples of each class in a capture; without one, among all of the client's training samples."""
    assert dataset.y is not None and dataset.classes is not None
    ids = dataset.train_ids[client] if capture is None else captured_ids(dataset, client, capture, streams)
    return np.bincount(dataset.y[ids], minlength=dataset.classes)


def phase_of_class(classes: int, phases: int, streams: Streams) -> NDArray[np.int64]:
    """(classes,) the phase that prefers each class: classes in random order, dealt in turn."""
    phase = np.empty(classes, np.int64)
    phase[streams("data/drift").generator().permutation(classes)] = np.arange(classes) % phases
    return phase


def _passes(own: NDArray[np.int64], client: int, capture: Capture, streams: Streams) -> NDArray[np.int64]:
    size = len(own)
    last = capture.first + capture.samples
    parts = []
    for number in range(capture.first // size, (last - 1) // size + 1):
        shuffled = own[streams("data/pass", client, number).generator().permutation(size)]
        begin = number * size
        parts.append(shuffled[max(capture.first - begin, 0) : last - begin])
    return np.concatenate(parts)


def _drifting(
    dataset: FederatedDataset, own: NDArray[np.int64], client: int, capture: Capture, streams: Streams
) -> NDArray[np.int64]:
    assert dataset.stream is not None and dataset.stream.drift is not None and capture.mixture is not None
    assert dataset.y is not None and dataset.classes is not None
    phases = len(capture.mixture)
    rng = streams("data/drifting", client, capture.first).generator()
    phase = np.searchsorted(np.cumsum(capture.mixture), rng.random(capture.samples), side="right")
    phase = np.minimum(phase, phases - 1)  # the shares may add up to a little less than 1
    by_phase = rng.random(capture.samples) < dataset.stream.drift.strength
    place = rng.random(capture.samples)
    own_phase = phase_of_class(dataset.classes, phases, streams)[dataset.y[own]]
    ids = own[(place * len(own)).astype(np.int64)]
    for number in range(phases):
        members = own[own_phase == number]
        chosen = by_phase & (phase == number)
        if len(members):
            ids[chosen] = members[(place[chosen] * len(members)).astype(np.int64)]
    return ids
