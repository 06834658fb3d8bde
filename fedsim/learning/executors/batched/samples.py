"""Mini-batches as tensors: decoded on the CPU some at a time, or taken from stored samples that lie on the device.

On a torch device samples stay as they are stored, a byte for a pixel, and are decoded there, some mini-batches at once,
to the same bits as on the CPU. What has another encoding than `Affine`, or is augmented, is decoded on the CPU and
copied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch

from fedsim.data.captures import captured_ids
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine
from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.batches import Seen, batches, mini_batches, training_samples
from fedsim.learning.joint_steps import SeenTogether, joint_ids
from fedsim.learning.training import TrainingSettings

__all__ = ["AHEAD_BYTES", "XY", "ResidentSamples", "Samples", "padded"]

AHEAD_BYTES = {"cpu": 2**18, "device": 2**21}
"""Bytes of one client's samples that are decoded together, at most, unless a mini-batch has more."""

XY = tuple[torch.Tensor, torch.Tensor]
"""Samples, and their labels or values."""


class Samples:
    """Decoded on the CPU."""

    _ahead_bytes = AHEAD_BYTES["cpu"]

    def __init__(self, dataset: FederatedDataset, dtype: torch.dtype) -> None:
        """Decoded samples are in *dtype*."""
        assert dataset.x is not None and dataset.y is not None
        self._dataset = dataset
        self._dtype = dtype

    def mini_batches(self, seen: Seen | SeenTogether, training: TrainingSettings, stream: Stream) -> Iterator[XY]:
        """`fedsim.learning.batches.mini_batches`, as tensors, some of them from one decoding."""
        feed = self.ids(seen, training, stream)
        if feed is None:
            yield from self._decoded(seen, training, stream)
            return
        for some in _together(feed, self._ahead):
            yield from _apart(self.of(np.concatenate(some)), some)

    def ids(
        self, seen: Seen | SeenTogether, training: TrainingSettings, stream: Stream
    ) -> Iterator[npt.NDArray[np.int64]] | None:
        """The ids of each mini-batch's samples; None where ids do not say all of it."""
        if isinstance(seen, SeenTogether):
            return None if seen.augmentation else joint_ids(self._dataset, seen, Streams(stream.seed))
        ids = self._ids(seen, stream)
        if ids is None:
            return None
        return batches(ids, batch_size=training.batch_size, epochs=training.epochs, rng=stream.generator())

    @property
    def _ahead(self) -> int:
        """How many samples are decoded together."""
        assert self._dataset.sample_shape is not None
        return self._ahead_bytes // (math.prod(self._dataset.sample_shape) * self._dtype.itemsize)

    def of(self, ids: npt.NDArray[np.int64]) -> XY:
        """The samples *ids*, and their labels or values."""
        assert self._dataset.y is not None
        return torch.from_numpy(self._dataset.samples(ids)).to(self._dtype), torch.from_numpy(self._dataset.y[ids])

    def _decoded(self, seen: Seen | SeenTogether, training: TrainingSettings, stream: Stream) -> Iterator[XY]:
        """Mini-batches of samples that have no ids, as each is drawn anew."""
        for x, y in mini_batches(self._dataset, seen, training, stream):
            yield torch.from_numpy(x).to(self._dtype), torch.from_numpy(y)

    def _ids(self, seen: Seen, stream: Stream) -> npt.NDArray[np.int64] | None:
        """What a training sees, as ids of samples; None where ids do not say all of it."""
        dataset = seen.of_it(self._dataset, stream.seed)
        if seen.capture is None:
            return training_samples(dataset, seen.client)
        if dataset.stream is not None and dataset.stream.augmentation is not None:
            return None
        return captured_ids(dataset, seen.client, seen.capture, Streams(stream.seed))


class ResidentSamples(Samples):
    """On a torch device."""

    _ahead_bytes = AHEAD_BYTES["device"]

    def __init__(self, dataset: FederatedDataset, dtype: torch.dtype, torch_device: str) -> None:
        """Copies all stored samples to *torch_device*, once."""
        super().__init__(dataset, dtype)
        self._torch_device = torch_device
        self._encoding = dataset.encoding if isinstance(dataset.encoding, Affine) else None
        self._x = None if self._encoding is None else torch.tensor(dataset.x).to(torch_device)
        self._y = torch.tensor(dataset.y).to(torch_device)

    @property
    def all_there(self) -> bool:
        """Whether samples lie on the device, and are decoded there."""
        return self._x is not None

    def of(self, ids: npt.NDArray[np.int64]) -> XY:
        """The samples *ids*, and their labels or values, on the device."""
        rows = self.placed(ids)
        if not self.all_there:
            return super().of(ids)[0].to(self._torch_device), self._y.index_select(0, rows)
        return self._taken(rows)

    def placed(self, ids: npt.NDArray[np.int64]) -> torch.Tensor:
        """*ids* on the device."""
        return torch.tensor(ids).to(self._torch_device)

    def at(self, rows: torch.Tensor, sizes: Sequence[int]) -> Iterator[XY]:
        """Mini-batches of so many samples each, whose ids, *rows*, lie on the device as the samples do."""
        for some in _together(iter(torch.split(rows, list(sizes))), self._ahead):
            yield from _apart(self._taken(torch.cat(some)), some)

    def _taken(self, rows: torch.Tensor) -> XY:
        assert self._x is not None and self._encoding is not None
        values = self._x.index_select(0, rows).to(torch.float32)
        if self._encoding.scale != 1.0:
            values *= self._encoding.scale
        if self._encoding.offset != 0.0:
            values += self._encoding.offset
        return values.to(self._dtype), self._y.index_select(0, rows)

    def _decoded(self, seen: Seen | SeenTogether, training: TrainingSettings, stream: Stream) -> Iterator[XY]:
        for x, y in super()._decoded(seen, training, stream):
            yield x.to(self._torch_device), y.to(self._torch_device)


def padded(rows: Sequence[torch.Tensor], width: int) -> torch.Tensor:
    """(clients, width, ...): each client's rows, and zeros where it has fewer than *width*."""
    if all(own.shape[0] == width for own in rows):
        return torch.stack(tuple(rows))
    stacked = rows[0].new_zeros(len(rows), width, *rows[0].shape[1:])
    for client, own in enumerate(rows):
        stacked[client, : len(own)] = own
    return stacked


_Ids = TypeVar("_Ids", bound=Sized)


def _together(feed: Iterator[_Ids], most: int) -> Iterator[list[_Ids]]:
    """Mini-batches that follow each other, as many as have *most* samples, at least one."""
    some: list[_Ids] = []
    samples = 0
    for batch in feed:
        if some and samples + len(batch) > most:
            yield some
            some, samples = [], 0
        some.append(batch)
        samples += len(batch)
    if some:
        yield some


def _apart(decoded: XY, some: Sequence[Sized]) -> Iterator[XY]:
    """What was decoded together, one mini-batch after the other."""
    sizes = [len(one) for one in some]
    return zip(*(torch.split(rows, sizes) for rows in decoded), strict=True)
