"""What an evaluation tells of a test set: score and loss, and what can be counted once predictions are known.

Counts are ``confusion``: how often samples of one class were taken for another one, as a flat list of triples (true
class, predicted class, samples), none of them 0, in ascending order. Flat, as evaluations of many clients stay in
memory, and a list of lists takes four times as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fedsim.data.target import CYCLES, Target
from fedsim.learning.divergence import diverged
from fedsim.learning.executors.trainer import Score
from fedsim.learning.operations.evaluate import MOST_CLASSES_COUNTED
from fedsim.learning.spread import spread

__all__ = ["Scored", "confusion", "metrics_of", "phm08"]

EARLY_CYCLES = 13.0
LATE_CYCLES = 10.0


class Scored(NamedTuple):
    """The samples of one test set, or of one client's, in order."""

    scores: Sequence[Score]
    """Of its batches."""
    y: npt.NDArray[Any]
    """(samples,) labels or values."""

    @property
    def loss(self) -> float:
        """Of all samples, summed."""
        return sum(score.loss for score in self.scores)

    @property
    def predicted(self) -> npt.NDArray[Any]:
        """(samples,) classes or values."""
        return np.concatenate([score.predicted for score in self.scores])


def metrics_of(tests: Sequence[Scored], *, classes: int | None, target: Target | None, several: bool) -> dict[str, Any]:
    """Metrics of one model on a test set, or on those of *several* clients with their `spread`.

    Accuracy and loss, and the counts where there are at most `MOST_CLASSES_COUNTED` classes; without classes, the loss
    and its root, and this in the unit of the *target*. Once the model has diverged, as in `fedsim.learning.divergence`,
    and without counts.
    """
    metrics = [_values(test, target) if classes is None else _shares(test) for test in tests]
    whole = spread(metrics) if several else metrics[0]
    if classes is not None and classes <= MOST_CLASSES_COUNTED:
        y, predicted = (
            np.concatenate(parts) for parts in zip(*((test.y, test.predicted) for test in tests), strict=True)
        )
        whole["confusion"] = None if diverged(whole) else confusion(y, predicted, classes)
    return whole


def _shares(test: Scored) -> dict[str, Any]:
    loss, samples = test.loss, len(test.y)
    accuracy = sum(score.correct for score in test.scores) / samples if math.isfinite(loss) else None
    return {"accuracy": accuracy, "loss": loss / samples, "samples": samples}


def _values(test: Scored, target: Target | None) -> dict[str, Any]:
    mean_loss = test.loss / len(test.y)
    metrics = {"loss": mean_loss, "rmse": math.sqrt(mean_loss), "samples": len(test.y)}
    if target is not None:
        metrics[target.rmse] = target.scale * metrics["rmse"]
        if target.unit == CYCLES:
            true, predicted = (target.scale * values.astype(np.float64) for values in (test.y, test.predicted))
            metrics["phm08"] = math.inf if diverged(metrics) else phm08(predicted, true)
    return metrics


def confusion(true: npt.NDArray[Any], predicted: npt.NDArray[Any], classes: int) -> list[int]:
    """The counts of labels from 0 to *classes* - 1, as triples.

    >>> confusion(np.array([0, 0, 2, 2, 2]), np.array([0, 1, 2, 0, 2]), classes=3)
    [0, 0, 1, 0, 1, 1, 2, 0, 1, 2, 2, 2]
    """
    pairs = (true * classes + predicted).astype(np.uint16)
    pairs.sort(kind="stable")  # by digits, in linear time, as numbers of 16 bits are
    begins = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1]))
    triples = np.empty((len(begins), 3), np.int64)
    triples[:, 0], triples[:, 1] = np.divmod(pairs[begins], classes)
    triples[:, 2] = np.diff(begins, append=len(pairs))
    flat: list[int] = triples.ravel().tolist()
    return flat


def phm08(predicted_cycles: npt.NDArray[Any], true_cycles: npt.NDArray[Any]) -> float:
    """Sum of exp(-d / 13) - 1 where d < 0, and of exp(d / 10) - 1 elsewhere; d is the prediction less the true life.

    To expect a failure too late costs more than to expect it too early (A. Saxena, K. Goebel, D. Simon, N. Eklund,
    *Damage Propagation Modeling for Aircraft Engine Run-to-Failure Simulation*, PHM 2008). Infinite where a prediction
    is so late (7,097 cycles) that no number is large enough; a remark after the run says so.

    >>> round(phm08(np.array([113.0, 87.0, 100.0]), np.full(3, 100.0)), 6)  # e**1.3 - 1 + e**1 - 1 + 0
    4.387578
    """
    late = np.asarray(predicted_cycles, np.float64) - np.asarray(true_cycles, np.float64)
    with np.errstate(over="ignore"):
        return float(np.expm1(np.where(late < 0, -late / EARLY_CYCLES, late / LATE_CYCLES)).sum())
