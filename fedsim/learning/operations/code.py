"""A model as it is read from the wire, where no client's training has made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedsim.learning.codecs.codec import Codec
from fedsim.learning.operations.operation import Inputs, Operation
from fedsim.learning.operations.train import BYTES, state_as

__all__ = ["Code"]


@dataclass(frozen=True)
class Code(Operation):
    """The change of "model" from "base" is written by a codec and read again; "state" is what the sender has kept.

    Outputs: the model's parts, ``state.NAME`` for what the codec keeps, and the "bytes".
    """

    name: ClassVar[str] = "code"
    scalars: ClassVar[frozenset[str]] = frozenset({BYTES})
    codec: Codec
    uncoded: tuple[str, ...] = ()
    """``part.name`` of running statistics, which are handed on as they are."""

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        """By the codec."""
        assert generator is not None
        base, model = inputs.model("base"), inputs.model("model")
        coded = [(part, name) for part in model for name in model[part] if f"{part}.{name}" not in self.uncoded]
        change = {f"{part}.{name}": model[part][name] - base[part][name] for part, name in coded}
        read, kept, size = self.codec.coded(change, inputs.model("state"), generator)
        made: dict[str, Any] = {part: dict(tensors) for part, tensors in model.items()}
        for part, name in coded:
            made[part][name] = base[part][name] + read[f"{part}.{name}"]
        return made | {state_as(name): dict(value) for name, value in kept.items()} | {BYTES: size}
