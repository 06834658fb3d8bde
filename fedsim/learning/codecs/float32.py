"""Numbers as they are: 4 bytes each."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from fedsim.learning.codecs.codec import Codec, Coded
from fedsim.learning.objectives.objective import State, Tensors
from fedsim.models.table import ModelTable

__all__ = ["Float32"]


class Float32(Codec):
    """Every number of an update in 4 bytes: nothing is lost."""

    name: Literal["float32"] = "float32"
    exact: ClassVar[bool] = True

    def bytes(self, table: ModelTable, part: str | None) -> float:
        """4 for each number, or as many as the model declares."""
        return table.bytes(part) - table.statistics_bytes(part)

    def code(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        """As it was."""
        size = sum(4 * tensor.numel() for tensor in change.values())
        return Coded({name: tensor.clone() for name, tensor in change.items()}, {}, size)
