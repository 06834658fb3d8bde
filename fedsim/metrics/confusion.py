"""What was taken for what: formulas from finished counts, samples by true class (row) and predicted class (column).

What cannot be known is NaN: the recall of a class without samples, the false alarms of a test set without sound ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Counts",
    "counts_of",
    "false_alarms",
    "macro_f1",
    "missed_faults",
    "recall",
]

Counts: TypeAlias = NDArray[np.int64]
"""(classes, classes) samples of each true class that were taken for each class."""


def counts_of(triples: Sequence[int], classes: int) -> Counts:
    """The table of an evaluation's ``confusion``, which has (true class, predicted class, samples) one after another.

    >>> counts_of([0, 0, 3, 0, 1, 1, 2, 2, 5], classes=3).tolist()
    [[3, 1, 0], [0, 0, 0], [0, 0, 5]]
    """
    counts = np.zeros((classes, classes), np.int64)
    true, predicted, samples = np.array(triples, np.int64).reshape(-1, 3).T
    counts[true, predicted] = samples
    return counts


def recall(counts: Counts) -> NDArray[np.float64]:
    """(classes,) the share of each class's samples that were taken for it.

    >>> recall(np.array([[3, 1, 0], [0, 0, 0], [0, 0, 5]])).tolist()
    [0.75, nan, 1.0]
    """
    of_class = counts.sum(axis=1)
    shares = np.full(len(counts), math.nan)
    np.divide(counts.diagonal(), of_class, out=shares, where=of_class > 0)
    return shares


def macro_f1(counts: Counts) -> float:
    """The mean of 2 TP / (2 TP + FP + FN) over classes, each counted once, whatever its number of samples.

    A class that is neither in the truth nor in the predictions is left out. One that is in the predictions alone has 0,
    and so has one that is never predicted. That is the rule of scikit-learn's ``f1_score(average="macro")``, whose
    labels are those of either.

    >>> round(macro_f1(np.array([[3, 1, 0], [0, 0, 0], [0, 0, 5]])), 6)  # (6/7 + 0 + 1) / 3
    0.619048
    """
    both = counts.sum(axis=1) + counts.sum(axis=0)  # 2 TP + FP + FN
    there = both > 0
    return float(np.mean(2 * counts.diagonal()[there] / both[there]))


def false_alarms(counts: Counts, sound: int) -> float:
    """The share of the samples of the class *sound* that were taken for faulty.

    >>> false_alarms(np.array([[3, 1, 0], [0, 0, 0], [0, 0, 5]]), sound=0)
    0.25
    """
    samples = int(counts[sound].sum())
    return (samples - int(counts[sound, sound])) / samples if samples else math.nan


def missed_faults(counts: Counts, sound: int) -> float:
    """The share of the samples of all other classes that were taken for *sound*; taken for another fault, it is seen.

    >>> missed_faults(np.array([[3, 1, 0], [1, 0, 0], [1, 1, 5]]), sound=0)
    0.25
    """
    faulty = int(counts.sum() - counts[sound].sum())
    return (int(counts[:, sound].sum()) - int(counts[sound, sound])) / faulty if faulty else math.nan
