"""Batch normalisation (Ioffe and Szegedy, ICML 2015), whose running statistics are part of a model's state.

While training, values are normalised by their batch; when a model is evaluated, by running means over batches. Leaves
out: the count of batches seen, which nothing reads as long as the running means forget at a fixed rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["BatchNorm1d", "BatchNorm2d"]


@dataclass(frozen=True)
class _BatchNorm(Layer):
    axes: ClassVar[tuple[str, ...]]
    channels: int

    @property
    def alone(self) -> bool:
        """No: it normalises over the batch."""
        return False

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Scale and offset of each channel, which PyTorch calls weight and bias."""
        return {"weight": (self.channels,), "bias": (self.channels,)}

    @property
    def buffer_shapes(self) -> dict[str, Shape]:
        """Running mean and variance of each channel."""
        return {"running_mean": (self.channels,), "running_var": (self.channels,)}

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) != 1 + len(self.axes) or input_shape[0] != self.channels:
            raise self._misfit(input_shape, f"({self.channels}, {', '.join(self.axes)})")
        return input_shape


@dataclass(frozen=True)
class BatchNorm2d(_BatchNorm):
    """Normalises each channel of images over the batch and the pixels.

    >>> norm = BatchNorm2d("bn", channels=16)
    >>> norm.parameter_shapes | norm.buffer_shapes
    {'weight': (16,), 'bias': (16,), 'running_mean': (16,), 'running_var': (16,)}
    """

    kind: ClassVar[str] = "batch_norm2d"
    axes: ClassVar[tuple[str, ...]] = ("height", "width")


@dataclass(frozen=True)
class BatchNorm1d(_BatchNorm):
    """Normalises each channel of series over the batch and the length."""

    kind: ClassVar[str] = "batch_norm1d"
    axes: ClassVar[tuple[str, ...]] = ("length",)
