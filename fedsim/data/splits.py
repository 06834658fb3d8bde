"""What a model is tested on must be set aside before anybody trains: the two ways in which fedsim does it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["hold_out", "hold_out_each", "stratified_sample"]


def stratified_sample(y: NDArray[np.int64], fraction: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Positions, ascending, of a random *fraction* of each class of *y*.

    The number is rounded class by class; of a class with two samples or more, at least one is taken and one is left.

    >>> y = np.repeat([0, 1], [10, 40])
    >>> y[stratified_sample(y, 0.2, np.random.default_rng(1))].tolist()
    [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    """
    taken = []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        number = min(max(round(fraction * len(members)), 1), len(members) - 1)
        taken.append(rng.permutation(members)[:number])
    return np.sort(np.concatenate(taken))


def hold_out(
    ids: NDArray[np.int64], fraction: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(kept, held out) of *ids*, both ascending: a random *fraction*, rounded, is held out, but one is always kept.

    >>> [part.size for part in hold_out(np.arange(10), 0.3, np.random.default_rng(1))]
    [7, 3]
    >>> [part.size for part in hold_out(np.arange(1), 0.9, np.random.default_rng(1))]
    [1, 0]
    """
    number = min(round(fraction * len(ids)), len(ids) - 1)
    mixed = rng.permutation(ids)
    kept, out = mixed[number:], mixed[:number]  # of one array, as there may be many clients with few samples
    kept.sort()
    out.sort()
    return kept, out


def hold_out_each(
    shares: Sequence[NDArray[np.int64]], fraction: float, rng: np.random.Generator
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(kept, held out) of each of *shares*, in their order, by `hold_out`."""
    return [hold_out(share, fraction, rng) for share in shares]
