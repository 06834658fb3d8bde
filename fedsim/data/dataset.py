"""A federated data set is one pile of samples and, for each client, the ids of those it owns.

The pile is shared, so that 100 clients cost no more memory than one. Left out: samples that arrive over time, and
features that differ between clients other than through the samples themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import UserError

__all__ = ["FederatedDataset", "class_counts"]

CONTENT_VERSION = 1  # raise it when the digest of the same content changes


@dataclass(frozen=True, eq=False)
class FederatedDataset:
    """Who holds which samples. All arrays are read-only; ids are row numbers of ``x``, ascending, used at most once.

    A data set that is only *declared* has numbers and nothing else: ``x``, ``y``, ``classes`` and ``sample_shape`` are
    None, and there are no ids. Raises `ValueError` where the parts contradict each other.
    """

    name: str
    """The registered name."""
    classes: int | None
    """Labels run from 0 to classes - 1."""
    sample_shape: tuple[int, ...] | None
    """Shape of one sample, channels first."""
    sample_bytes: float | None
    """Bytes of one raw sample and its label on the wire; None when nobody said so."""
    client_samples: NDArray[np.int64]
    """(clients,) training samples of each client, at least 1."""
    x: NDArray[np.float32] | None = None
    """(samples, *sample_shape)"""
    y: NDArray[np.int64] | None = None
    """(samples,)"""
    train_ids: tuple[NDArray[np.int64], ...] = ()
    """One array for each client."""
    test_ids: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """The global test set, which no client holds."""
    client_test_ids: tuple[NDArray[np.int64], ...] = ()
    """One array for each client: what it keeps back to test on. May be empty."""
    digest: str = field(init=False)
    """Address of all that training can see (not the name, not the bytes on the wire). It is computed, never given."""

    def __post_init__(self) -> None:
        """Freeze the arrays, check them, and address the content."""
        for name in ("client_samples", "x", "y", "test_ids"):
            object.__setattr__(self, name, _read_only(getattr(self, name)))
        for name in ("train_ids", "client_test_ids"):
            object.__setattr__(self, name, tuple(map(_read_only, getattr(self, name))))
        for fault in _faults(self):
            raise ValueError(f"data set {self.name!r}: {fault}")
        object.__setattr__(self, "digest", _content_digest(self))

    @property
    def clients(self) -> int:
        """How many clients there are."""
        return len(self.client_samples)

    def raw_bytes(self, client: int) -> float:
        """Bytes on the wire when *client* sends all of its raw training samples, labels included.

        Raises `UserError` when the data set does not say how large a sample is.
        """
        if self.sample_bytes is None:
            raise UserError(f"data set {self.name!r} does not say how large a raw sample is; give data.sample_bytes")
        return float(self.client_samples[client] * self.sample_bytes)


def class_counts(data: FederatedDataset) -> NDArray[np.int64]:
    """(clients, classes) training samples of each client and class.

    Raises `UserError` when the data set is only declared and has no labels.
    """
    if data.y is None or data.classes is None:
        raise UserError(f"data set {data.name!r} declares numbers only; it has no labels to count")
    owner = np.repeat(np.arange(data.clients), data.client_samples)
    labels = data.y[np.concatenate(data.train_ids)]
    counts = np.bincount(owner * data.classes + labels, minlength=data.clients * data.classes)
    return counts.reshape(data.clients, data.classes)


def _read_only(array: NDArray[Any] | None) -> NDArray[Any] | None:
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view


def _faults(data: FederatedDataset) -> Iterable[str]:
    """What is wrong, first things first: later checks rely on earlier ones."""
    if not _is(data.client_samples, np.int64, 1) or data.clients < 1 or data.client_samples.min() < 1:
        yield "client_samples must hold a whole number (int64) of at least 1 for each of at least 1 client"
    if data.sample_bytes is not None and not 0 < data.sample_bytes < np.inf:
        yield f"sample_bytes={data.sample_bytes} must be positive and finite, or None"
    if data.x is None:
        yield from _faults_of_declared(data)
    else:
        yield from _faults_of_samples(data, data.x)
        yield from _faults_of_ids(data, len(data.x))


def _faults_of_declared(data: FederatedDataset) -> Iterable[str]:
    if not (data.y is None and data.classes is None and data.sample_shape is None):
        yield "x, y, classes and sample_shape must be given together, or all be None"
    if data.train_ids or data.client_test_ids or data.test_ids.size:
        yield "ids need samples to point at, but x is None"


def _faults_of_samples(data: FederatedDataset, x: NDArray[np.float32]) -> Iterable[str]:
    if data.y is None or data.classes is None or data.sample_shape is None:
        yield "x, y, classes and sample_shape must be given together, or all be None"
        return
    if x.dtype != np.float32 or x.shape[1:] != data.sample_shape:
        yield f"x is {x.dtype} {x.shape}, not float32 (samples, *{data.sample_shape})"
    if not np.isfinite(x).all():
        yield "x must be finite"
    if not _is(data.y, np.int64, 1) or len(data.y) != len(x):
        yield f"y is {data.y.dtype} {data.y.shape}, not int64 ({len(x)},)"
    if len(data.y) and not 0 <= data.y.min() <= data.y.max() < data.classes:
        yield f"labels run from {data.y.min()} to {data.y.max()}, not from 0 to {data.classes - 1}"


def _faults_of_ids(data: FederatedDataset, samples: int) -> Iterable[str]:
    groups = (*data.train_ids, *data.client_test_ids, data.test_ids)
    if len(data.train_ids) != data.clients or len(data.client_test_ids) != data.clients:
        yield f"train_ids and client_test_ids must hold one array for each of {data.clients} clients"
    if not all(_is(ids, np.int64, 1) for ids in groups):
        yield "ids must be int64, one-dimensional"
    if not np.array_equal([len(ids) for ids in data.train_ids], data.client_samples):
        yield "client_samples must be the lengths of train_ids"
    pooled = np.concatenate(groups)
    if pooled.size and not 0 <= pooled.min() <= pooled.max() < samples:
        yield f"ids run from {pooled.min()} to {pooled.max()}, but there are {samples} samples"
    group = np.repeat(np.arange(len(groups)), [len(ids) for ids in groups])
    if ((group[1:] == group[:-1]) & (pooled[1:] <= pooled[:-1])).any():
        yield "ids must ascend within a client"
    if pooled.size and np.bincount(pooled).max() > 1:
        yield f"sample {np.bincount(pooled).argmax()} belongs to two sets; all must be disjoint"


def _is(array: NDArray[Any], dtype: type[np.generic], dimensions: int) -> bool:
    return array.dtype == dtype and array.ndim == dimensions


def _content_digest(data: FederatedDataset) -> str:
    """SHA-256 over everything that training can see, independent of the machine's byte order."""
    digest = hashlib.sha256(f"fedsim data {CONTENT_VERSION} {data.classes} {data.sample_shape}".encode())
    client_tests = np.array([len(ids) for ids in data.client_test_ids], np.int64)
    ids = np.concatenate((data.test_ids, *data.train_ids, *data.client_test_ids))
    for array in (data.client_samples, client_tests, ids, data.x, data.y):
        if array is None:
            digest.update(b"none")
            continue
        ordered = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{ordered.dtype.str} {ordered.shape}".encode())
        digest.update(ordered.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
