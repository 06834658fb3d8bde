"""Class counts of captures that follow each other: a client's pass is shuffled once, not for each capture of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsim.data.captures import Capture, classes_seen, pass_order
from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Streams

__all__ = ["ClassCounts"]


class ClassCounts:
    """What `fedsim.data.captures.classes_seen` says, for whoever asks again and again."""

    def __init__(self, dataset: FederatedDataset, streams: Streams) -> None:
        self._dataset, self._streams = dataset, streams
        self._passes: dict[int, tuple[int, NDArray[np.int64]]] = {}
        """By client, the number of the pass that was last asked for, and its labels in order."""
        self._counted: dict[int, Capture | None] = {}
        """By client, the capture that was counted last."""
        self._rows = np.zeros((len(dataset.train_ids), dataset.classes or 0), np.int64)
        """(clients, classes) its counts."""

    def rows(self, captures: Sequence[tuple[int, Capture | None]]) -> NDArray[np.int64]:
        """(captures, classes) samples of each class in some clients' *captures*; None: in all of its own samples."""
        for client, capture in captures:
            if client not in self._counted or self._counted[client] is not capture:
                self._rows[client], self._counted[client] = self.of(client, capture), capture
        return self._rows[[client for client, _ in captures]]

    def of(self, client: int, capture: Capture | None) -> NDArray[np.int64]:
        """(classes,) samples of each class in a capture; None: in all of its own samples."""
        if capture is None or capture.mixture is not None:  # in a drift each sample is drawn for itself
            return classes_seen(self._dataset, client, capture, self._streams)
        assert self._dataset.classes is not None
        size, classes = len(self._dataset.train_ids[client]), self._dataset.classes
        first, last = capture.first, capture.first + capture.samples
        counts = np.zeros(classes, np.int64)
        for number in range(first // size, (last - 1) // size + 1):
            begin = number * size
            some = self._labels(client, number, size)[max(first - begin, 0) : last - begin]
            counts += np.bincount(some, minlength=classes)
        return counts

    def _labels(self, client: int, number: int, size: int) -> NDArray[np.int64]:
        known = self._passes.get(client)
        if known is None or known[0] != number:
            assert self._dataset.y is not None
            order = pass_order(client, number, size, self._streams)
            known = self._passes[client] = number, self._dataset.y[self._dataset.train_ids[client][order]]
        return known[1]
