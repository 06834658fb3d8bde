"""A layer is known by its shapes: they fix its parameters, its work and which inputs it takes.

Shapes are one sample's, without the batch axis; images are channel-first ``(channels, height, width)``. The arithmetic
of output sizes is that of Dumoulin and Visin, "A guide to convolution arithmetic for deep learning" (2016).

Leaves out: rectangular kernels, dilation, groups, padding while pooling, layers without bias, normalisation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from math import prod
from typing import ClassVar, TypeAlias

__all__ = ["Conv2d", "Flatten", "Layer", "Linear", "MaxPool2d", "ReLU", "Shape"]

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Layer(ABC):
    """One layer: a name, unique in its model, and whole numbers that fix its shapes.

    Raises `ValueError` for a name that is empty or holds a dot, and for a size below one (padding: below zero).
    """

    kind: ClassVar[str]
    name: str

    def __post_init__(self) -> None:
        """Check the name and the sizes."""
        if not self.name or "." in self.name:
            raise ValueError(f"a layer's name must not be empty or hold a dot, it is {self.name!r}")
        for key, size in self.sizes.items():
            least = 0 if key == "padding" else 1
            if size < least:
                raise ValueError(f"{key}={size} of layer {self.name!r} must be at least {least}")

    @property
    def sizes(self) -> dict[str, int]:
        """Every shape-bearing hyper-parameter, in order."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}

    @property
    def signature(self) -> str:
        """Type and every shape-bearing hyper-parameter, without the name: layers that may be averaged have equal ones.

        >>> Linear("fc", inputs=100, outputs=62).signature
        'linear(inputs=100, outputs=62)'
        """
        return f"{self.kind}({', '.join(f'{key}={size}' for key, size in self.sizes.items())})"

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """``"weight"`` and ``"bias"`` -> shape, in this order, as PyTorch lays them out; empty without parameters."""
        return {}

    @abstractmethod
    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape of what comes out of one sample; raises `ValueError` when the input does not fit."""

    def macs(self, input_shape: Shape) -> int:
        """Multiply-accumulates of one sample's forward pass; 0 for activations and pooling, and biases are not counted.

        Raises `ValueError` when the input does not fit.
        """
        self.output_shape(input_shape)
        return 0

    def _misfit(self, input_shape: Shape, rule: str) -> ValueError:
        return ValueError(f"layer {self.name!r} ({self.signature}) takes {rule}, the input's shape is {input_shape}")


@dataclass(frozen=True)
class Conv2d(Layer):
    """A square convolution with bias: ``height -> (height + 2 padding - kernel) // stride + 1``, the width likewise.

    >>> conv = Conv2d("conv1", in_channels=1, out_channels=32, kernel=5, padding=2)
    >>> conv.output_shape((1, 28, 28)), conv.macs((1, 28, 28))  # 32 * 28 * 28 outputs of 1 * 5 * 5 products
    ((32, 28, 28), 627200)
    """

    kind: ClassVar[str] = "conv2d"
    in_channels: int
    out_channels: int
    kernel: int
    stride: int = 1
    padding: int = 0

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Weight (out_channels, in_channels, kernel, kernel) and bias (out_channels,)."""
        return {
            "weight": (self.out_channels, self.in_channels, self.kernel, self.kernel),
            "bias": (self.out_channels,),
        }

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(out_channels, height, width)``."""
        if len(input_shape) != 3 or input_shape[0] != self.in_channels:
            raise self._misfit(input_shape, f"({self.in_channels}, height, width)")
        least = self.kernel - 2 * self.padding
        if min(input_shape[1:]) < least:
            raise self._misfit(input_shape, f"images of at least {least} x {least} pixels")
        height, width = ((size - least) // self.stride + 1 for size in input_shape[1:])
        return (self.out_channels, height, width)

    def macs(self, input_shape: Shape) -> int:
        """Each output is a sum of ``in_channels * kernel ** 2`` products; the padding's zeros count as products."""
        return prod(self.output_shape(input_shape)) * self.in_channels * self.kernel**2


@dataclass(frozen=True)
class Linear(Layer):
    """A fully connected layer with bias, on a vector.

    >>> fc = Linear("fc", inputs=3, outputs=2)
    >>> fc.output_shape((3,)), fc.macs((3,)), fc.parameter_shapes
    ((2,), 6, {'weight': (2, 3), 'bias': (2,)})
    """

    kind: ClassVar[str] = "linear"
    inputs: int
    outputs: int

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Weight (outputs, inputs) and bias (outputs,)."""
        return {"weight": (self.outputs, self.inputs), "bias": (self.outputs,)}

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
class MaxPool2d(Layer):
    """The maximum over squares that touch but do not overlap; an incomplete row or column at the edge is dropped.

    >>> MaxPool2d("pool", kernel=2).output_shape((32, 7, 7))
    (32, 3, 3)
    """

    kind: ClassVar[str] = "max_pool2d"
    kernel: int

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(channels, height // kernel, width // kernel)``."""
        if len(input_shape) != 3 or min(input_shape[1:]) < self.kernel:
            raise self._misfit(input_shape, f"images of at least {self.kernel} x {self.kernel} pixels")
        channels, height, width = input_shape
        return (channels, height // self.kernel, width // self.kernel)


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
