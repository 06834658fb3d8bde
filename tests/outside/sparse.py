"""A codec whose size depends on values, as somebody else would write it."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from fedsim.learning.codecs.codec import Codec, Coded
from fedsim.learning.objectives.objective import State, Tensors


class Sparse(Codec):
    """The changes that are larger than a threshold, 8 bytes each; the rest waits on the device."""

    name: Literal["sparse"] = "sparse"
    measured: ClassVar[bool] = True
    remembers: ClassVar[tuple[str, ...]] = ("residual",)
    threshold: float = 0.01

    def code(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        rest = state.get("residual", {})
        whole = {name: value + rest[name] if name in rest else value for name, value in change.items()}
        sent = {name: value * (value.abs() > self.threshold) for name, value in whole.items()}
        size = 8 * sum(int((value != 0).sum()) for value in sent.values())
        return Coded(sent, {"residual": {name: whole[name] - sent[name] for name in whole}}, size)
