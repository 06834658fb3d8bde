"""A federated data set is one array of samples and, for each client, the ids of those it owns.

The array is shared, so that 100 clients cost no more memory than one, and stays as it was measured: a byte for a pixel.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.encoding import AS_IT_IS, Encoding
from fedsim.data.raw_dataset import Later, Stored
from fedsim.data.stream.settings import StreamSettings
from fedsim.data.target import Target
from fedsim.errors import UserError
from fedsim.imports import source_digest

__all__ = ["POOL", "FederatedDataset"]

POOL = -1
"""The "client" that holds everybody's samples: what the cloud trains on when raw samples were sent to it."""

AT_ONCE = 2**22  # numbers
CONTENT_VERSION = 2  # raise it when the digest of the same content changes


@dataclass(frozen=True, eq=False)
class FederatedDataset:
    """Who holds which samples. All arrays are read-only; ids are row numbers of ``x``, ascending.

    What somebody trains on is in no other set. Test sets may share samples: the global one may be everybody's own.

    A data set that is only *declared* has numbers and nothing else: ``stored``, ``x``, ``y``, ``classes`` and
    ``sample_shape`` are None, and there are no ids. Raises `ValueError` where the parts contradict each other.
    """

    name: str
    """The registered name."""
    classes: int | None
    """Labels run from 0 to classes - 1; None for regression, where ``y`` holds numbers."""
    sample_shape: tuple[int, ...] | None
    """Shape of one sample once it is decoded, channels first."""
    sample_bytes: float | None
    """Bytes of one raw sample and its label on the wire; None when nobody said so."""
    client_samples: NDArray[np.int64]
    """(clients,) training samples of each client, at least 1."""
    stored: Stored | None = None
    """What ``x`` is made of: the array itself, or one that is made later."""
    y: NDArray[Any] | None = None
    """(samples,) int64 labels; float32 for regression."""
    encoding: Encoding = AS_IT_IS
    """From stored to decoded samples."""
    train_ids: tuple[NDArray[np.int64], ...] = ()
    """One array for each client."""
    test_ids: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """The global test set, which no client holds."""
    client_test_ids: tuple[NDArray[np.int64], ...] = ()
    """One array for each client: what it keeps back to test on. May be empty."""
    unseen_test_ids: tuple[NDArray[np.int64], ...] = ()
    """One array for each unseen client, which takes part in nothing but tests."""
    class_names: tuple[str, ...] = ()
    """One for each class, or none at all."""
    stream: StreamSettings | None = None
    """How samples come and go; None when every client keeps all of its own."""
    remarks: tuple[str, ...] = ()
    """What was left out or changed on the way from the source, in sentences for people."""
    sound_class: int | None = None
    """The class of what has no fault; None where there is none, or nobody says so."""
    target: Target | None = None
    """What the values of ``y`` are, for people; None for classes, and where nobody says so."""
    levels: tuple[float, ...] = ()
    """Values of ``y`` at which the next level begins, ascending: what stands for classes where samples are counted by
    them. Empty for classes, and where nobody says so."""
    whole: FederatedDataset | None = None
    """The data set of which this is a view, with the same samples; None: it is one of its own."""
    told_apart_by: str = ""
    """What tells this view from others of the same data set."""
    held_back: int = 0
    """What was asked of `fedsim.data.held_back` to make this of another data set; 0: nothing is held back."""
    held_back_samples: NDArray[np.int64] | None = None
    """(clients,) how many samples of its own each client does not train on; None: all train on all of theirs."""
    held_back_ids: tuple[NDArray[np.int64], ...] = ()
    """One array for each client, where something is: these samples."""

    def __post_init__(self) -> None:
        """Freeze the arrays, and check them."""
        for name in ("client_samples", "y", "test_ids"):
            object.__setattr__(self, name, _read_only(getattr(self, name)))
        for name in ("train_ids", "client_test_ids", "unseen_test_ids", "held_back_ids"):
            object.__setattr__(self, name, tuple(map(_read_only, getattr(self, name))))
        for fault in _faults(self):
            raise ValueError(f"data set {self.name!r}: {fault}")

    @cached_property
    def x(self) -> NDArray[Any] | None:
        """(samples, ...) uint8, int16 or float32, as stored; `samples` decodes them. Made when it is first read."""
        if self.whole is not None:
            return self.whole.x
        return None if self.stored is None else _read_only(np.asarray(self.stored))

    @cached_property
    def digest(self) -> str:
        """Address of all samples that training and tests can see: not the name, the bytes on the wire, the stream, or
        what classes and values are."""
        if self.whole is not None:
            return hashlib.sha256(f"{self.whole.digest} {self.told_apart_by}".encode()).hexdigest()
        return _content_digest(self)

    @property
    def clients(self) -> int:
        """How many clients there are."""
        return len(self.client_samples)

    @property
    def regression(self) -> bool:
        """Whether models learn to tell numbers, not classes."""
        return self.y is not None and self.classes is None

    @property
    def counted_classes(self) -> int | None:
        """How many classes samples are counted by, or levels of numbers; None where there is neither."""
        return len(self.levels) + 1 if self.levels else self.classes

    @cached_property
    def class_or_level(self) -> NDArray[np.int64]:
        """(samples,) what each sample counts as: its class, or the level of its number, both from 0."""
        assert self.y is not None and self.counted_classes is not None
        if not self.levels:
            return self.y
        return np.searchsorted(np.array(self.levels, self.y.dtype), self.y, side="right")

    @property
    def labels(self) -> tuple[str, ...]:
        """What classes are called: by their names, or by their numbers where they have none; empty for regression."""
        return self.class_names or tuple(map(str, range(self.classes or 0)))

    @property
    def outputs(self) -> int | None:
        """What a model has to give for each sample: a score for each class, or one number; None when only declared."""
        return 1 if self.regression else self.classes

    @property
    def vocabulary(self) -> int | None:
        """Decoded samples are ids below this number; None when they are numbers."""
        return self.encoding.vocabulary

    def samples(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """``(ids, *sample_shape)`` decoded samples, in new memory: float32, or int64 where there is a vocabulary."""
        return self.encoding.decode(self.rows(ids))

    def rows(self, ids: NDArray[np.int64]) -> NDArray[Any]:
        """(ids, ...) samples as stored; while ``x`` is not made, only these are made."""
        if self.whole is not None:
            return self.whole.rows(ids)
        if isinstance(self.stored, Later) and "x" not in vars(self):
            return self.stored.make_rows(ids)
        assert self.x is not None, "only declared"
        rows: NDArray[Any] = self.x[ids]
        return rows

    def raw_bytes(self, client: int) -> float:
        """Bytes on the wire when *client* sends all of its raw training samples, labels included.

        Raises `UserError` when the data set does not say how large a sample is.
        """
        if self.sample_bytes is None:
            raise UserError(f"data set {self.name!r} does not say how large a raw sample is; give data.sample_bytes")
        return float(self.client_samples[client] * self.sample_bytes)


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
    if data.stored is None:
        yield from _faults_of_declared(data)
    else:
        yield from _faults_of_samples(data, data.stored)
        yield from _faults_of_targets(data, data.stored.shape[0])
        yield from _faults_of_ids(data, data.stored.shape[0])


def _faults_of_declared(data: FederatedDataset) -> Iterable[str]:
    if not (data.y is None and data.classes is None and data.sample_shape is None):
        yield "stored, y and sample_shape must be given together, or all be None"
    if data.levels:
        yield "levels are of values, and none are given"
    if data.train_ids or data.client_test_ids or data.test_ids.size:
        yield "ids need samples to point at, but stored is None"


def _faults_of_samples(data: FederatedDataset, stored: Stored) -> Iterable[str]:
    if data.y is None or data.sample_shape is None:
        yield "stored, y and sample_shape must be given together, or all be None"
        return
    made = f"{stored.dtype} {stored.shape}"
    if stored.dtype not in (np.uint8, np.int16, np.float32):
        yield f"x is {made}, not uint8, int16 or float32"
    if data.encoding.sample_shape(stored.shape[1:]) != data.sample_shape:
        yield f"x is {made}, and {data.encoding} does not make {data.sample_shape} of them"
    if isinstance(stored, Later) and stored.dtype != np.float32 and data.vocabulary is None:
        return  # there is no number that they must not be
    x = data.x
    assert x is not None
    if x.dtype == np.float32 and not _finite(x):
        yield "x must be finite"
    if data.vocabulary is not None and x.size and not 0 <= x.min() <= x.max() < data.vocabulary:
        yield f"ids run from {x.min()} to {x.max()}, not from 0 to {data.vocabulary - 1}"


def _finite(x: NDArray[Any]) -> bool:
    """Whether all numbers of *x* are; some samples at once, for all would take a quarter of its memory again."""
    at_once = max(AT_ONCE // max(x[:1].size, 1), 1)
    return all(np.isfinite(x[begin : begin + at_once]).all() for begin in range(0, len(x), at_once))


def _faults_of_targets(data: FederatedDataset, samples: int) -> Iterable[str]:
    y = data.y
    assert y is not None
    if not _is(y, np.float32 if data.classes is None else np.int64, 1) or len(y) != samples:
        yield f"y is {y.dtype} {y.shape}, not int64 (float32 without classes) ({samples},)"
    if data.classes is None:
        if not np.isfinite(y).all():
            yield "y must be finite"
    elif len(y) and not 0 <= y.min() <= y.max() < data.classes:
        yield f"labels run from {y.min()} to {y.max()}, not from 0 to {data.classes - 1}"
    if data.class_names and len(data.class_names) != data.classes:
        yield f"there are {len(data.class_names)} names for {data.classes or 'no'} classes"
    if data.sound_class is not None and not 0 <= data.sound_class < (data.classes or 0):
        yield f"sound_class={data.sound_class} is none of {data.classes or 0} classes"
    if data.target is not None and data.classes is not None:
        yield "a target is what values are, and here are classes"
    if data.levels and data.classes is not None:
        yield "levels are of values, and here are classes"
    if not all(map(math.isfinite, data.levels)) or any(later <= earlier for earlier, later in pairwise(data.levels)):
        yield f"levels={data.levels} must be finite, and ascend"


def _faults_of_ids(data: FederatedDataset, samples: int) -> Iterable[str]:
    apart = (*data.client_test_ids, *data.unseen_test_ids, *data.held_back_ids, data.test_ids)
    groups = (*data.train_ids, *apart)
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
    trained = np.bincount(np.concatenate(data.train_ids), minlength=samples)
    tested = np.zeros(samples, np.int64)
    tested[np.concatenate(groups[data.clients :])] = 1
    if (trained + tested > 1).any():
        yield f"sample {(trained + tested).argmax()} is trained on, and belongs to another set too"


def _is(array: NDArray[Any], dtype: type[np.generic], dimensions: int) -> bool:
    return array.dtype == dtype and array.ndim == dimensions


def _content_digest(data: FederatedDataset) -> str:
    """SHA-256 over everything that training can see, independent of the machine's byte order."""
    facts = f"fedsim data {CONTENT_VERSION} {data.classes} {data.sample_shape} {data.encoding!r}"
    facts += source_digest(type(data.encoding)) or ""
    digest = hashlib.sha256(facts.encode())
    own_tests = np.array([len(ids) for ids in data.client_test_ids], np.int64)
    unseen = np.array([len(ids) for ids in data.unseen_test_ids], np.int64)
    ids = np.concatenate((data.test_ids, *data.train_ids, *data.client_test_ids, *data.unseen_test_ids))
    for array in (data.client_samples, own_tests, unseen, ids, data.x, data.y):
        if array is None:
            digest.update(b"none")
            continue
        ordered = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{ordered.dtype.str} {ordered.shape}".encode())
        digest.update(ordered.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
