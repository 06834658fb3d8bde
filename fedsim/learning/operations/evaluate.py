"""How good a model is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.learning.operations.operation import Operation

__all__ = ["METRICS", "Evaluate", "EvaluateOwn"]

METRICS = "metrics"
"""Its output."""


@dataclass(frozen=True)
class Evaluate(Operation):
    """Metrics of the "model" on a test set."""

    name: ClassVar[str] = "evaluate"
    version: ClassVar[int] = 3
    scalars: ClassVar[frozenset[str]] = frozenset({METRICS})
    model: str
    """The table's digest."""
    data: str
    """The data set's digest."""
    on: str
    """``global``, ``clients`` or ``unseen``."""


@dataclass(frozen=True)
class EvaluateOwn(Evaluate):
    """Metrics of one client's own "model" on its own test samples: what has not changed costs nothing."""

    name: ClassVar[str] = "evaluate_own"
    version: ClassVar[int] = 1
    client: int
