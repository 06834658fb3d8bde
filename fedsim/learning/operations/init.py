"""A model before anybody has trained it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.learning.operations.operation import Operation

__all__ = ["Init"]


@dataclass(frozen=True)
class Init(Operation):
    """The parts of a model, drawn from the node's stream by its table's rule."""

    name: ClassVar[str] = "init"
    model: str
    """The table's digest."""
