"""A share of samples, drawn: of each class, or of what one client has."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ids", "hold_out", "stratified_sample"]

Ids: TypeAlias = NDArray[np.int64]
"""Row numbers of samples."""


def stratified_sample(y: Ids, fraction: float, rng: np.random.Generator) -> Ids:
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


def hold_out(ids: Ids, fraction: float, rng: np.random.Generator) -> tuple[Ids, Ids]:
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
