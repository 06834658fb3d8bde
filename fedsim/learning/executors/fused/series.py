"""Layers of series. Most compute with rows: images of one row, channels last.

Small convolutions are in machine code, place by place, or by windows where samples go in; others, and pooling, are
those of images, for which PyTorch has fast code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.fused.placed import channels_last, convolved, lying_by_place
from fedsim.learning.executors.fused.rounding import rounds_in_instructions
from fedsim.learning.kernels.machine_code import has_kernels, layer_kernel
from fedsim.learning.kernels.shapes import LANES, Windows
from fedsim.models.torch_layers import KMaxPoolModule

__all__ = [
    "ConvolutionOfSeries",
    "ImageConvolutionOfSeries",
    "LargestOfSeries",
    "LayerOfSeries",
    "PointwiseConvolutionOfSeries",
    "PoolingOfSeries",
]

MOST_WEIGHTS = 2**14
"""Of a convolution in machine code: they stay in the nearest caches."""

MOST_COLUMNS = 16
"""Of a kernel that is taken place by place: its code grows with them, and so does the time to make it."""
ENOUGH_ROUNDED = 2**26
"""Samples times places times weights from which on PyTorch's rounded convolution is faster, on a Zen 5."""
ENOUGH_SAMPLES = 16
"""From which on PyTorch gives a pointwise convolution to oneDNN when it has one thread."""


class LayerOfSeries(nn.Module, ABC):
    """Takes and makes (samples, channels, length), or rows: (samples, channels, 1, length)."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A series of a series, a row of a row."""
        return self.of_row(x) if x.dim() == 4 else self.of_row(x.unsqueeze(2)).squeeze(2)

    @abstractmethod
    def of_row(self, x: torch.Tensor) -> torch.Tensor:
        """A row of a row."""


class ConvolutionOfSeries(LayerOfSeries):
    """Takes the place of a small `torch.nn.Conv1d`, with its parameters; a weight lies as (places, inputs, outputs)."""

    def __init__(self, layer: nn.Conv1d) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(lying_by_place(layer.weight.detach())), layer.bias
        self._inside, self._stride, self._padding = _fits_inside(layer), layer.stride[0], _padding(layer)

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if there is machine code for it.

        There is none for the gradient of what a convolution of few channels takes. So these are only taken where
        samples may go in: with fewer channels than `LANES`.
        """
        if not (has_kernels() and isinstance(layer, nn.Conv1d) and layer.bias is not None):
            return None
        fits = layer.weight.numel() <= MOST_WEIGHTS and layer.out_channels % LANES == 0
        return cls(layer) if fits and (_fits_inside(layer) or layer.in_channels < LANES) else None

    def of_row(self, x: torch.Tensor) -> torch.Tensor:
        """See `LayerOfSeries`."""
        if self._inside and rounds_in_instructions() and self._products(x) >= ENOUGH_ROUNDED:
            return _as_image(x, self.weight, self.bias, self._stride, self._padding)
        x = x.float()
        if self._inside:
            return convolved(x, self.weight, self.bias, self._padding)
        made: torch.Tensor = _Windows.apply(x, self.weight, self.bias, self._stride, self._padding)  # type: ignore[no-untyped-call]
        return made

    def _products(self, x: torch.Tensor) -> int:
        return len(x) * x.shape[3] * self.weight.numel()


def _as_image(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: int, padding: int
) -> torch.Tensor:
    return nn.functional.conv2d(channels_last(x), weight.unsqueeze(2), bias, (1, stride), (0, padding))


def _fits_inside(layer: nn.Conv1d) -> bool:
    """Whether it may stand behind others: there is machine code for the gradient of what it takes."""
    narrow = _padding(layer) < layer.kernel_size[0] <= MOST_COLUMNS
    return layer.in_channels % LANES == 0 and layer.stride[0] == 1 and narrow


class _Windows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int, padding: int
    ) -> torch.Tensor:
        rows = _padded(x, padding)
        (samples, length, inputs), (outputs, _, kernel) = rows.shape, weight.shape
        windows = (length - kernel) // stride + 1
        about = Windows(kernel * inputs, stride * inputs, outputs)
        y = torch.empty((samples, outputs, 1, windows), dtype=x.dtype, memory_format=torch.channels_last)
        products = layer_kernel("window_products", about)
        tensors = (rows, weight.permute(2, 1, 0).contiguous(), bias, y)
        products(samples, windows, length * inputs, *(tensor.data_ptr() for tensor in tensors))
        ctx.about, ctx.stride, ctx.padding, ctx.length = about, stride, padding, x.shape[3]
        ctx.save_for_backward(rows, weight)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (rows, weight), dy = ctx.saved_tensors, channels_last(gradients[0])
        (samples, length, inputs), (outputs, _, kernel), windows = rows.shape, weight.shape, dy.shape[3]
        d_weight = dy.new_empty(kernel, inputs, outputs)
        sums = layer_kernel("sums_of_windows", ctx.about)
        sums(samples, windows, length * inputs, rows.data_ptr(), dy.data_ptr(), d_weight.data_ptr())
        d_x = None
        if ctx.needs_input_grad[0]:  # nobody asks for it where samples go in, as a rule
            more = ctx.length - ((windows - 1) * ctx.stride - 2 * ctx.padding + kernel)
            sizes = (1, ctx.stride), (0, ctx.padding), (0, more)
            d_x = nn.functional.conv_transpose2d(dy, weight.unsqueeze(2), None, *sizes)
        return d_x, d_weight.permute(2, 1, 0), dy.sum(dim=(0, 2, 3)), None, None


def _padded(x: torch.Tensor, padding: int) -> torch.Tensor:
    """(samples, length, channels) of a row, with zeros around."""
    rows = x.squeeze(2).transpose(1, 2)
    return nn.functional.pad(rows, (0, 0, padding, padding)).contiguous() if padding else rows.contiguous()


class PointwiseConvolutionOfSeries(LayerOfSeries):
    """Takes the place of a `torch.nn.Conv1d` of one place, with its parameters.

    A few samples are cut into enough of them that PyTorch gives them to oneDNN, which takes half the time.
    """

    def __init__(self, layer: nn.Conv1d) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        if not isinstance(layer, nn.Conv1d) or (layer.kernel_size, layer.stride) != ((1,), (1,)) or _padding(layer):
            return None
        return cls(layer)

    def of_row(self, x: torch.Tensor) -> torch.Tensor:
        """See `LayerOfSeries`."""
        samples, _, _, length = x.shape
        fitting = (number for number in range(1, ENOUGH_SAMPLES + 1) if length % number == 0)
        cuts = next((number for number in fitting if samples * number >= ENOUGH_SAMPLES), 1)
        cut = _cut_into(x, samples * cuts, length // cuts)
        return _cut_into(nn.functional.conv2d(cut, self.weight.unsqueeze(2), self.bias), samples, length)


def _cut_into(x: torch.Tensor, samples: int, length: int) -> torch.Tensor:
    """Rows as so many *samples* of another *length*."""
    places = channels_last(x).permute(0, 2, 3, 1)
    return places.reshape(samples, 1, length, x.shape[1]).permute(0, 3, 1, 2)


class ImageConvolutionOfSeries(LayerOfSeries):
    """Takes the place of a `torch.nn.Conv1d`, with its parameters; they lie channels last."""

    def __init__(self, layer: nn.Conv1d) -> None:
        super().__init__()
        self.weight = nn.Parameter(layer.weight.detach().transpose(1, 2).contiguous().transpose(1, 2))
        self.bias = layer.bias
        self._stride, self._padding = layer.stride[0], _padding(layer)

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        return cls(layer) if isinstance(layer, nn.Conv1d) else None

    def of_row(self, x: torch.Tensor) -> torch.Tensor:
        """See `LayerOfSeries`."""
        return _as_image(x, self.weight, self.bias, self._stride, self._padding)


class PoolingOfSeries(LayerOfSeries):
    """Takes the place of a `torch.nn.MaxPool1d`."""

    def __init__(self, layer: nn.MaxPool1d) -> None:
        super().__init__()
        kernel, stride, padding = layer.kernel_size, layer.stride, layer.padding
        assert isinstance(kernel, int) and isinstance(stride, int) and isinstance(padding, int), "as tables have them"
        self._sizes = (1, kernel), (1, stride), (0, padding)

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        return cls(layer) if isinstance(layer, nn.MaxPool1d) else None

    def of_row(self, x: torch.Tensor) -> torch.Tensor:
        """See `LayerOfSeries`."""
        return nn.functional.max_pool2d(x, *self._sizes)


class LargestOfSeries(nn.Module):
    """Takes the place of a `KMaxPoolModule`, and keeps the same values: to order them all takes longer."""

    def __init__(self, layer: KMaxPoolModule) -> None:
        super().__init__()
        self._by_order = layer

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        return cls(layer) if isinstance(layer, KMaxPoolModule) else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(samples, channels, k) of (samples, channels, length)."""
        x, k = x.contiguous(), self._by_order.k
        values = x.detach().float().numpy()
        least = np.partition(values, -k, axis=2)[:, :, -k, None]
        kept, equal = ~(values <= least), values == least  # what is no number is larger than all numbers
        missing = k - np.count_nonzero(kept, axis=2, keepdims=True)
        kept |= equal & (np.cumsum(equal, axis=2, dtype=np.int32) <= missing)
        if np.isnan(least).any():
            by_order: torch.Tensor = self._by_order(x)
            return by_order
        places = np.nonzero(kept)[2].reshape(*x.shape[:2], k)
        return x.gather(2, torch.from_numpy(places))


def _padding(layer: nn.Conv1d) -> int:
    assert not isinstance(layer.padding, str), "tables have numbers"
    return layer.padding[0]
