"""When a target accuracy counts as reached: one rule, which a single spike of a saw-tooth curve cannot satisfy."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["CONFIRMING_EVALUATIONS", "TOLERANCE", "first_confirmed"]

CONFIRMING_EVALUATIONS = 3
TOLERANCE = 0.005  # half a percentage point
ROUNDING = 1e-12  # of a mean of accuracies: exactly half a point below is near enough


def first_confirmed(accuracies: Sequence[float | None], target: float) -> int | None:
    """Position of the first evaluation at or above *target* whose next three average at most 0.5 points below it.

    None while there is none; an evaluation with fewer than three after it is not confirmed yet. None, of a
    model that has diverged, reaches nothing and confirms nothing.

    >>> first_confirmed([0.5, 0.8, 0.6, 0.6, 0.6, 0.81, 0.79, 0.80, 0.80], 0.8)
    5
    >>> first_confirmed([0.9, 0.9, 0.9], 0.8) is None
    True
    """
    scores = [math.nan if accuracy is None else accuracy for accuracy in accuracies]
    for position in range(len(scores) - CONFIRMING_EVALUATIONS):
        following = scores[position + 1 : position + 1 + CONFIRMING_EVALUATIONS]
        if scores[position] >= target and sum(following) / len(following) >= target - TOLERANCE - ROUNDING:
            return position
    return None
