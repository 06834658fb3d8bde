"""How many samples of each class clients have: all their own, or in captures that follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fedsim.data.captures import Capture, captured_ids, pass_order
from fedsim.data.dataset import FederatedDataset
from fedsim.errors import UserError
from fedsim.kernel.streams import Streams

__all__ = ["ClassCounts", "class_counts", "classes_held"]

AT_ONCE = 2**22  # numbers


def class_counts(data: FederatedDataset, clients: slice = slice(None)) -> NDArray[np.int64]:
    """(clients, classes) training samples of each client and class; *clients* are those asked for, left out, all.

    Where there are numbers to predict, their levels stand for classes. Raises `UserError` when the data set has
    neither.
    """
    if data.counted_classes is None:
        why = "has numbers to predict, without levels" if data.regression else "declares numbers only"
        raise UserError(f"data set {data.name!r} {why}; it has no classes to count")
    held = data.client_samples[clients]
    owner = np.repeat(np.arange(len(held)), held)
    labels = data.class_or_level[np.concatenate(data.train_ids[clients])]
    counts = np.bincount(owner * data.counted_classes + labels, minlength=len(held) * data.counted_classes)
    return counts.reshape(-1, data.counted_classes)


def classes_held(data: FederatedDataset) -> NDArray[np.int64]:
    """(clients,) of how many classes each client has training samples; some clients at once, so that memory is small.

    Raises `UserError` as `class_counts` does.
    """
    rows = max(AT_ONCE // (data.counted_classes or 1), 1)
    return np.concatenate(
        [
            np.count_nonzero(class_counts(data, slice(begin, begin + rows)), axis=1)
            for begin in range(0, data.clients, rows)
        ]
    )


class ClassCounts:
    """What `fedsim.data.captures.classes_seen` says, for whoever asks again and again.

    A client's pass is shuffled once, and not for each capture of it.
    """

    def __init__(self, dataset: FederatedDataset, streams: Streams) -> None:
        self._dataset, self._streams = dataset, streams
        self._passes: dict[int, tuple[int, NDArray[np.int64]]] = {}
        """By client, the number of the pass that was last asked for, and its labels in order."""
        self._counted: dict[int, Capture | None] = {}
        """By client, the capture that was counted last."""
        self._rows = np.zeros((len(dataset.train_ids), dataset.counted_classes or 0), np.int64)
        """(clients, classes) its counts."""

    def rows(self, captures: Sequence[tuple[int, Capture | None]]) -> NDArray[np.int64]:
        """(captures, classes) samples of each class in some clients' *captures*; None: in all of its own samples."""
        new = [
            (client, capture)
            for client, capture in captures
            if client not in self._counted or self._counted[client] is not capture
        ]
        if new:
            self._rows[[client for client, _ in new]] = self._count(new)
            self._counted.update(new)
        return self._rows[[client for client, _ in captures]]

    def _count(self, captures: Sequence[tuple[int, Capture | None]]) -> NDArray[np.int64]:
        """(captures, classes) by one call of numpy. Captures are small, so that a call for each would take longer."""
        classes = self._rows.shape[1]
        parts = [
            (place, labels) for place, (client, capture) in enumerate(captures) for labels in self._of(client, capture)
        ]
        places = np.repeat([place for place, _ in parts], [len(labels) for _, labels in parts])
        labels = np.concatenate([labels for _, labels in parts])
        return np.bincount(places * classes + labels, minlength=len(captures) * classes).reshape(-1, classes)

    def _of(self, client: int, capture: Capture | None) -> Iterator[NDArray[np.int64]]:
        """The labels of a capture, in one part or several."""
        labels, own = self._dataset.class_or_level, self._dataset.train_ids[client]
        if capture is None:
            yield labels[own]
        elif capture.mixture is not None:  # in a drift each sample is drawn for itself
            yield labels[captured_ids(self._dataset, client, capture, self._streams)]
        else:
            size, first, last = len(own), capture.first, capture.first + capture.samples
            for number in range(first // size, (last - 1) // size + 1):
                begin = number * size
                yield self._labels(client, number, size)[max(first - begin, 0) : last - begin]

    def _labels(self, client: int, number: int, size: int) -> NDArray[np.int64]:
        known = self._passes.get(client)
        if known is None or known[0] != number:
            order = pass_order(client, number, size, self._streams)
            known = self._passes[client] = number, self._dataset.class_or_level[self._dataset.train_ids[client][order]]
        return known[1]
