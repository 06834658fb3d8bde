"""How good a model is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fedsim.data.target import Target
from fedsim.learning.operations.operation import Operation

__all__ = ["METRICS", "MOST_CLASSES_COUNTED", "Evaluate", "EvaluateOwn"]

METRICS = "metrics"
"""Its output."""
MOST_CLASSES_COUNTED = 256
"""Of a data set with more classes no evaluation counts what was taken for what."""


@dataclass(frozen=True)
class Evaluate(Operation):
    """Metrics of the "model" on a test set."""

    name: ClassVar[str] = "evaluate"
    version: ClassVar[int] = 4
    scalars: ClassVar[frozenset[str]] = frozenset({METRICS})
    model: str
    """The table's digest."""
    data: str
    """The data set's digest."""
    on: str
    """``global``, ``clients`` or ``unseen``."""
    target: Target | None = field(default=None, kw_only=True)
    """What predicted values are; None for classes, and where nobody says so."""


@dataclass(frozen=True)
class EvaluateOwn(Evaluate):
    """Metrics of one client's own "model" on its own test samples: what has not changed costs nothing."""

    name: ClassVar[str] = "evaluate_own"
    version: ClassVar[int] = 2
    client: int
