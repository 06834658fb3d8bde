"""When a model counts as diverged: one rule, for whoever evaluates a model, ends a run or tells of it.

A model has diverged when at least one score that it gives on a test set, or its loss there, is not a finite number. It
then has no accuracy on that test set (None), and its loss and its root mean squared error are infinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["diverged", "why_it_ended"]


def diverged(metrics: Mapping[str, Any]) -> bool:
    """Whether *metrics* of a test set are those of a model that has diverged.

    >>> diverged({"accuracy": None, "loss": math.inf}), diverged({"accuracy": 0.1, "loss": 2.3})
    (True, False)
    """
    return bool(metrics["loss"] == math.inf)


def why_it_ended(round_number: int, learning_rates: Sequence[str]) -> str:
    """Why a run ends with the round at which its model is found to have diverged.

    *learning_rates* are the keys that may be too large, the likeliest first.

    >>> why_it_ended(3, ["training.learning_rate"])
    'the model diverged: after round 3 its scores are not finite; a smaller training.learning_rate may help'
    """
    problem = f"the model diverged: after round {round_number} its scores are not finite"
    return f"{problem}; a smaller {' or '.join(learning_rates)} may help"
