"""Convolutions over images and over series, in the arithmetic of Dumoulin and Visin (2016).

Leaves out: rectangular kernels, dilation, groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["Conv1d", "Conv2d"]


@dataclass(frozen=True)
class _Convolution(Layer):
    axes: ClassVar[tuple[str, ...]]
    rule: ClassVar[str]
    in_channels: int
    out_channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    bias: bool = True

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Weight (out_channels, in_channels, then the kernel's size along each axis) and bias (out_channels,)."""
        weight = {"weight": (self.out_channels, self.in_channels, *[self.kernel] * len(self.axes))}
        return weight | {"bias": (self.out_channels,)} if self.bias else weight

    def output_shape(self, input_shape: Shape) -> Shape:
        """The channels, and the size along each axis."""
        if len(input_shape) != 1 + len(self.axes) or input_shape[0] != self.in_channels:
            raise self._misfit(input_shape, f"({self.in_channels}, {', '.join(self.axes)})")
        least = self.kernel - 2 * self.padding
        if min(input_shape[1:]) < least:
            raise self._misfit(input_shape, self.rule.format(least=least))
        return (self.out_channels, *((size - least) // self.stride + 1 for size in input_shape[1:]))

    def macs(self, input_shape: Shape) -> int:
        """Each output is a sum of one product per input channel and kernel cell, the padding's zeros included."""
        cells = prod(self.kernel for _ in self.axes)
        return prod(self.output_shape(input_shape)) * self.in_channels * cells


@dataclass(frozen=True)
class Conv2d(_Convolution):
    """A square convolution: ``height -> (height + 2 padding - kernel) // stride + 1``, the width likewise.

    >>> conv = Conv2d("conv1", in_channels=1, out_channels=32, kernel=5, padding=2)
    >>> conv.output_shape((1, 28, 28)), conv.macs((1, 28, 28))  # 32 * 28 * 28 outputs of 1 * 5 * 5 products
    ((32, 28, 28), 627200)
    """

    kind: ClassVar[str] = "conv2d"
    axes: ClassVar[tuple[str, ...]] = ("height", "width")
    rule: ClassVar[str] = "images of at least {least} x {least} pixels"


@dataclass(frozen=True)
class Conv1d(_Convolution):
    """A convolution along a series: ``length -> (length + 2 padding - kernel) // stride + 1``.

    >>> conv = Conv1d("conv1", in_channels=1, out_channels=16, kernel=64, stride=16, padding=24)
    >>> conv.output_shape((1, 2048)), conv.macs((1, 2048))  # 16 * 128 outputs of 64 products
    ((16, 128), 131072)
    """

    kind: ClassVar[str] = "conv1d"
    axes: ClassVar[tuple[str, ...]] = ("length",)
    rule: ClassVar[str] = "series of a length of at least {least}"
