"""A model and its change, of which gates take a share only (FedFusion: Yao et al., ICIP 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedsim.learning.operations.operation import Inputs, Operation, Value

__all__ = ["MoveGates"]


@dataclass(frozen=True)
class MoveGates(Operation):
    """``base + change``; of the *gates*, ``base + share change``, which is ``share mean + (1 - share) base``."""

    name: ClassVar[str] = "move_gates"
    gates: tuple[str, ...]
    """By their full names, ``part.layer.gate``."""
    share: float

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """The parts of the change."""
        base = inputs.model("base")
        return {
            part: {
                name: base[part][name] + (self.share * moved if f"{part}.{name}" in self.gates else moved)
                for name, moved in changes.items()
            }
            for part, changes in inputs.model("change").items()
        }
