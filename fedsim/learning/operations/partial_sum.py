"""The weighted change of some models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.learning.operations.operation import Operation

__all__ = ["TERM", "PartialSum"]

TERM = "term"
"""The role of the models that are summed, in their order."""


@dataclass(frozen=True)
class PartialSum(Operation):
    """``sum of weight_i (term_i - base)``, added up in the order of the terms."""

    name: ClassVar[str] = "partial_sum"
    folds: ClassVar[bool] = True
    weights: tuple[float, ...]
