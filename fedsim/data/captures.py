"""What a device sees: positions on its endless stream of samples, and the samples that stand there.

A capture is a pure function of the client and of the positions: nothing depends on when, or after what, it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedsim.data.dataset import FederatedDataset
from fedsim.data.stream.drift import DriftSettings
from fedsim.data.stream.settings import Augmentation
from fedsim.kernel.streams import Streams

__all__ = [
    "Capture",
    "DriftOfSamples",
    "augmented",
    "capture_samples",
    "captured_ids",
    "changes_to_samples",
    "classes_seen",
    "pass_order",
    "phase_of_class",
    "resized_crops",
]


class Capture(NamedTuple):
    """So many samples of a client's stream, from a position on."""

    first: int
    """Position of the first one; a client's stream begins at 0."""
    samples: int
    """How many follow each other."""
    mixture: tuple[float, ...] | None = None
    """Share of each phase of the drift; None without one."""


DriftOfSamples: TypeAlias = float | tuple[float, tuple[tuple[int, ...], ...]]
"""How strong a drift is; with the classes of each phase, where they are named."""


def capture_samples(
    dataset: FederatedDataset, client: int, capture: Capture, streams: Streams
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The decoded samples of a capture, augmented if the data set's stream says so, and their labels or values."""
    assert dataset.y is not None
    ids = captured_ids(dataset, client, capture, streams)
    x = dataset.samples(ids)
    if dataset.stream is not None and dataset.stream.augmentation is not None:
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
    """(classes,) samples of each class in a capture; without one, among all of the client's training samples.

    Where there are numbers to predict, their levels stand for classes.
    """
    ids = dataset.train_ids[client] if capture is None else captured_ids(dataset, client, capture, streams)
    return np.bincount(dataset.class_or_level[ids], minlength=dataset.counted_classes or 0)


def changes_to_samples(dataset: FederatedDataset) -> tuple[Mapping[str, Any] | None, DriftOfSamples | None]:
    """What the data set's stream does to samples, and how it drifts."""
    augmentation, drift = (
        (None, None) if dataset.stream is None else (dataset.stream.augmentation, dataset.stream.drift)
    )
    return (
        None if augmentation is None else augmentation.model_dump(mode="json"),
        None if drift is None else (drift.strength, _named_groups(dataset, drift)) if drift.groups else drift.strength,
    )


def phase_of_class(classes: int, phases: int, streams: Streams) -> NDArray[np.int64]:
    """(classes,) the phase that prefers each class: classes in random order, dealt in turn."""
    phase = np.empty(classes, np.int64)
    phase[streams("data/drift").generator().permutation(classes)] = np.arange(classes) % phases
    return phase


def _named_groups(dataset: FederatedDataset, drift: DriftSettings) -> tuple[tuple[int, ...], ...]:
    """The classes of each phase; that they are the data set's is checked before anything runs."""
    return tuple(tuple(map(dataset.labels.index, group)) for group in drift.groups)


def _phases_with(dataset: FederatedDataset, drift: DriftSettings, streams: Streams) -> NDArray[np.bool_]:
    """(phases, classes) whether each phase has each class."""
    assert dataset.classes is not None
    has = np.zeros((drift.all_phases, dataset.classes), bool)
    if drift.groups:
        for phase, classes in enumerate(_named_groups(dataset, drift)):
            has[phase, list(classes)] = True
    else:
        dealt = phase_of_class(dataset.classes, drift.all_phases, streams)
        has[dealt, np.arange(dataset.classes)] = True
    return has


def pass_order(client: int, number: int, size: int, streams: Streams) -> NDArray[np.int64]:
    """The order in which the *number*-th pass of a client goes through its *size* samples."""
    return streams("data/pass", client, number).generator().permutation(size)


def _passes(own: NDArray[np.int64], client: int, capture: Capture, streams: Streams) -> NDArray[np.int64]:
    size = len(own)
    last = capture.first + capture.samples
    parts = []
    for number in range(capture.first // size, (last - 1) // size + 1):
        shuffled = own[pass_order(client, number, size, streams)]
        begin = number * size
        parts.append(shuffled[max(capture.first - begin, 0) : last - begin])
    return np.concatenate(parts)


def _drifting(
    dataset: FederatedDataset, own: NDArray[np.int64], client: int, capture: Capture, streams: Streams
) -> NDArray[np.int64]:
    assert dataset.stream is not None and dataset.stream.drift is not None and capture.mixture is not None
    assert dataset.y is not None
    phases = len(capture.mixture)
    rng = streams("data/drifting", client, capture.first).generator()
    phase = np.searchsorted(np.cumsum(capture.mixture), rng.random(capture.samples), side="right")
    phase = np.minimum(phase, phases - 1)  # the shares may add up to a little less than 1
    by_phase = rng.random(capture.samples) < dataset.stream.drift.strength
    place = rng.random(capture.samples)
    has = _phases_with(dataset, dataset.stream.drift, streams)[:, dataset.y[own]]
    ids = own[(place * len(own)).astype(np.int64)]
    for number in range(phases):
        members = own[has[number]]
        chosen = by_phase & (phase == number)
        if len(members):
            ids[chosen] = members[(place[chosen] * len(members)).astype(np.int64)]
    return ids


def augmented(images: NDArray[np.float32], augmentation: Augmentation, rng: np.random.Generator) -> NDArray[np.float32]:
    """(n, channels, height, width) *images* in [0, 1], each cropped, enlarged to its old size, and brightened.

    Every image has its own draws, always as many, in the order: area, aspect, left, top, brightness. What leaves
    [0, 1] is saturated, as in a camera. All arithmetic is element by element, in float32, so that it does not depend on
    the machine. Left out: flips and rotations, which change what a character is.
    """
    draws = rng.random((5, len(images)))
    low, high = augmentation.area
    area = low + (high - low) * draws[0]
    low, high = np.log(augmentation.aspect[0]), np.log(augmentation.aspect[1])
    aspect = np.exp(low + (high - low) * draws[1])
    width, height = np.minimum(np.sqrt(area * aspect), 1.0), np.minimum(np.sqrt(area / aspect), 1.0)
    left, top = draws[2] * (1.0 - width), draws[3] * (1.0 - height)
    cropped = resized_crops(images, left, top, width, height)
    factor = (1.0 + augmentation.brightness * (2.0 * draws[4] - 1.0)).astype(np.float32)
    cropped *= factor[:, None, None, None]
    bright: NDArray[np.float32] = np.clip(cropped, 0.0, 1.0, out=cropped)
    return bright


def resized_crops(
    images: NDArray[np.float32],
    left: NDArray[np.float64],
    top: NDArray[np.float64],
    width: NDArray[np.float64],
    height: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Each image's rectangle (shares of the image's sides), enlarged to the whole by bilinear interpolation.

    Pixel i of P in a row lies at s = P (left + width (i + 1/2) / P) - 1/2 of the source, moved to the nearest edge
    centre when outside; rows likewise.

    >>> ramp = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4).repeat(4, axis=2)
    >>> half, whole = np.array([0.5]), np.array([1.0])
    >>> resized_crops(ramp, 0 * half, 0 * half, half, whole)[0, 0, 0].tolist()
    [0.0, 0.25, 0.75, 1.25]
    """
    number, channels, rows, columns = images.shape
    y0, y1, y_share = _places(top, height, rows)
    x0, x1, x_share = _places(left, width, columns)
    pixels = images.transpose(0, 2, 3, 1).reshape(-1, channels)  # channels last, so that one index finds all of them
    lines = np.arange(number * rows).reshape(number, rows)
    one, other = (pixels.take(columns * lines[:, :, None] + x[:, None], axis=0) for x in (x0, x1))
    wide = _between(one, other, x_share[:, None, :, None]).reshape(number * rows, columns * channels)
    upper, lower = (wide.take(lines[:, :1] + y, axis=0) for y in (y0, y1))
    whole = _between(upper, lower, y_share[:, :, None]).reshape(number, rows, columns, channels)
    return np.ascontiguousarray(whole.transpose(0, 3, 1, 2))


def _places(
    start: NDArray[np.float64], extent: NDArray[np.float64], pixels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """(n, pixels) the source pixels on both sides of each new one, and the share of the second."""
    centres = (np.arange(pixels) + 0.5) / pixels
    at = np.clip(pixels * (start[:, None] + extent[:, None] * centres) - 0.5, 0, pixels - 1)
    low = np.minimum(at.astype(np.int64), max(pixels - 2, 0))
    return low, np.minimum(low + 1, pixels - 1), (at - low).astype(np.float32)


def _between(one: NDArray[np.float32], other: NDArray[np.float32], share: NDArray[np.float32]) -> NDArray[np.float32]:
    """``one + share (other - one)``, in the memory of *other*."""
    other -= one
    other *= share
    other += one
    return other
