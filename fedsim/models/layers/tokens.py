"""The first layer of models that read tokens: whole numbers, of which 0 stands for everything that is no token.

Looking up costs no multiplication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["Embedding", "OneHot"]


@dataclass(frozen=True)
class OneHot(Layer):
    """Token t of 1 … *tokens* becomes a one in channel t - 1; token 0 becomes zeros.

    >>> OneHot("one_hot", tokens=70).output_shape((1014,))
    (70, 1014)
    """

    kind: ClassVar[str] = "one_hot"
    tokens: int

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(tokens, length)``."""
        if len(input_shape) != 1:
            raise self._misfit(input_shape, "sequences of tokens (length,)")
        return (self.tokens, *input_shape)


@dataclass(frozen=True)
class Embedding(Layer):
    """Token t of 0 … *tokens* becomes row t of a trained table, whose row 0 is zeros and stays so.

    >>> embedding = Embedding("embedding", tokens=70, dimension=16)
    >>> embedding.output_shape((1024,)), embedding.parameter_shapes
    ((16, 1024), {'weight': (71, 16)})
    """

    kind: ClassVar[str] = "embedding"
    tokens: int
    dimension: int

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Weight (tokens + 1, dimension); the zeros of row 0 count as parameters, as in PyTorch."""
        return {"weight": (self.tokens + 1, self.dimension)}

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(dimension, length)``."""
        if len(input_shape) != 1:
            raise self._misfit(input_shape, "sequences of tokens (length,)")
        return (self.dimension, *input_shape)
