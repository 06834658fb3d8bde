"""The sum of two sums, or of a model and its change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.learning.operations.operation import Operation

__all__ = ["Add"]


@dataclass(frozen=True)
class Add(Operation):
    """``base + change``, tensor by tensor."""

    name: ClassVar[str] = "add"
