"""Fully connected layers, and what stands between layers: flattening, rectifying, dropping out."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["Dropout", "Flatten", "Linear", "ReLU"]


@dataclass(frozen=True)
class Linear(Layer):
    """A fully connected layer on a vector.

    >>> fc = Linear("fc", inputs=3, outputs=2)
    >>> fc.output_shape((3,)), fc.macs((3,)), fc.parameter_shapes
    ((2,), 6, {'weight': (2, 3), 'bias': (2,)})
    """

    kind: ClassVar[str] = "linear"
    inputs: int
    outputs: int
    bias: bool = True

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Weight (outputs, inputs) and bias (outputs,)."""
        weight: dict[str, Shape] = {"weight": (self.outputs, self.inputs)}
        return weight | {"bias": (self.outputs,)} if self.bias else weight

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(outputs,)``."""
        if input_shape != (self.inputs,):
            raise self._misfit(input_shape, f"vectors of shape ({self.inputs},)")
        return (self.outputs,)

    def macs(self, input_shape: Shape) -> int:
        """One product per weight."""
        return prod(self.output_shape(input_shape)) * self.inputs


@dataclass(frozen=True)
class ReLU(Layer):
    """The rectifier, max(x, 0), on any shape."""

    kind: ClassVar[str] = "relu"

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        return input_shape


@dataclass(frozen=True)
class Dropout(Layer):
    """While training, each value is zero with probability *rate* and else divided by ``1 - rate``; any shape.

    Raises `ValueError` for a rate outside [0, 1).
    """

    kind: ClassVar[str] = "dropout"
    rate: float

    def __post_init__(self) -> None:
        """Check the name and the rate."""
        super().__post_init__()
        if not 0 <= self.rate < 1:
            raise ValueError(f"rate={self.rate} of layer {self.name!r} must be at least 0 and below 1")

    @property
    def alone(self) -> bool:
        """Where it leaves nothing out."""
        return self.rate == 0

    @property
    def sizes(self) -> dict[str, int]:
        """None: the rate shapes nothing."""
        return {}

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        return input_shape


@dataclass(frozen=True)
class Flatten(Layer):
    """One vector of everything, in row-major order.

    >>> Flatten("flatten").output_shape((64, 7, 7))
    (3136,)
    """

    kind: ClassVar[str] = "flatten"

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(number of values,)``."""
        return (prod(input_shape),)
