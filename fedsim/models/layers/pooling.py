"""Pooling: fewer values along the axes, the same channels.

Leaves out: padding and overlap while pooling images.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["GlobalAveragePool", "KMaxPool", "MaxPool1d", "MaxPool2d"]


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
class MaxPool1d(Layer):
    """The maximum over windows of a series; an incomplete window at its end is dropped.

    Raises `ValueError` when the padding is more than half of the kernel: a window could then hold nothing else.

    >>> MaxPool1d("pool", kernel=3, stride=3).output_shape((256, 1008))
    (256, 336)
    >>> MaxPool1d("pool", kernel=3, stride=2, padding=1).output_shape((64, 1024))  # (1024 + 2 - 3) // 2 + 1
    (64, 512)
    """

    kind: ClassVar[str] = "max_pool1d"
    kernel: int
    stride: int
    padding: int = 0

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(channels, (length + 2 padding - kernel) // stride + 1)``."""
        least = self.kernel - 2 * self.padding
        if len(input_shape) != 2 or input_shape[1] < least:
            raise self._misfit(input_shape, f"series (channels, length) of a length of at least {least}")
        channels, length = input_shape
        return (channels, (length - least) // self.stride + 1)


@dataclass(frozen=True)
class KMaxPool(Layer):
    """The *k* largest values of each channel, in the order in which they stand in the series.

    Of equal values the first are taken. (Kalchbrenner et al., ACL 2014, section 3.2.)

    >>> KMaxPool("pool", k=8).output_shape((512, 128))
    (512, 8)
    """

    kind: ClassVar[str] = "k_max_pool"
    k: int

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(channels, k)``."""
        if len(input_shape) != 2 or input_shape[1] < self.k:
            raise self._misfit(input_shape, f"series (channels, length) of a length of at least {self.k}")
        return (input_shape[0], self.k)


@dataclass(frozen=True)
class GlobalAveragePool(Layer):
    """The mean of each channel, over all axes but the channels'.

    >>> GlobalAveragePool("pool").output_shape((64, 8, 8))
    (64,)
    """

    kind: ClassVar[str] = "global_average_pool"

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(channels,)``."""
        if len(input_shape) < 2:
            raise self._misfit(input_shape, "channels of one or more axes each")
        return (input_shape[0],)
