"""Convolution and pooling of series, channels last.

Small convolutions are products of windows; others, and pooling, are those of images one pixel high, for which PyTorch
has fast code.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import torch
from torch import nn

from fedsim.learning.executors.compiled.geometry import LANES
from fedsim.learning.executors.compiled.machine_code import host_machine
from fedsim.learning.executors.compiled.program import Kernel, Part, Program
from fedsim.learning.executors.fused.series_kernels import Windows, emit_sums_of_windows, emit_window_products

__all__ = ["ConvolutionOfSeries", "ImageConvolutionOfSeries", "PoolingOfSeries"]

MOST_WEIGHTS = 2**14
"""Of a convolution that is taken as products of windows: they stay in the nearest caches."""


class ConvolutionOfSeries(nn.Module):
    """Takes the place of a small `torch.nn.Conv1d`, with its parameters; a weight lies as (places, inputs, outputs)."""

    def __init__(self, layer: nn.Conv1d) -> None:
        super().__init__()
        self.weight = nn.Parameter(layer.weight.detach().permute(2, 1, 0).contiguous().permute(2, 1, 0))
        self.bias = layer.bias
        self._stride, self._padding = layer.stride[0], _padding(layer)

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if there is machine code for it.

        There is none for the gradient of what a convolution of few channels, or with a stride, takes. So these are only
        taken where samples may go in: with fewer channels than `LANES`.
        """
        if not isinstance(layer, nn.Conv1d) or layer.bias is None or layer.weight.numel() > MOST_WEIGHTS:
            return None
        inside = layer.in_channels % LANES == 0 and layer.stride[0] == 1 and _padding(layer) < layer.kernel_size[0]
        fits = layer.out_channels % LANES == 0 and (inside or layer.in_channels < LANES)
        return cls(layer) if fits else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (samples, channels, length)."""
        options = self._stride, self._padding
        made: torch.Tensor = _Convolution.apply(x.float(), self.weight, self.bias, *options)  # type: ignore[no-untyped-call]
        return made


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, stride: int, padding: int
    ) -> torch.Tensor:
        rows = _padded(x, padding)
        (samples, length, inputs), (outputs, _, kernel) = rows.shape, weight.shape
        windows = (length - kernel) // stride + 1
        about = Windows(kernel * inputs, stride * inputs, outputs)
        y = x.new_empty(samples, windows, outputs)
        tensors = (rows, weight.permute(2, 1, 0).contiguous(), bias, y)
        _kernels(about)[0](samples, windows, length * inputs, *(tensor.data_ptr() for tensor in tensors))
        ctx.about, ctx.padding, ctx.input_shape = about, padding, x.shape
        ctx.save_for_backward(rows, weight)
        return y.transpose(1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        rows, weight = ctx.saved_tensors
        (samples, length, inputs), (outputs, _, kernel), about = rows.shape, weight.shape, ctx.about
        dy = gradients[0].transpose(1, 2).contiguous()
        windows = dy.shape[1]
        d_weight = dy.new_empty(kernel, inputs, outputs)
        sums = _kernels(about)[1]
        sums(samples, windows, length * inputs, rows.data_ptr(), dy.data_ptr(), d_weight.data_ptr())
        d_bias = dy.sum(dim=(0, 1))
        d_x = None
        if ctx.needs_input_grad[0]:
            stride = about.step // inputs
            d_x = _input_gradient(dy, weight, ctx.padding, ctx.input_shape[2], stride)
        return d_x, d_weight.permute(2, 1, 0), d_bias, None, None


def _input_gradient(dy: torch.Tensor, weight: torch.Tensor, padding: int, length: int, stride: int) -> torch.Tensor:
    """That of windows at every place: the convolution, with the places of the weights in reverse."""
    (samples, windows, outputs), (_, inputs, kernel) = dy.shape, weight.shape
    if inputs % LANES or stride != 1:  # nobody asks for it where samples go in, as a rule
        more = length - ((windows - 1) * stride - 2 * padding + kernel)
        return nn.functional.conv_transpose1d(
            dy.transpose(1, 2), weight, stride=stride, padding=padding, output_padding=more
        )
    rows = nn.functional.pad(dy, (0, 0, kernel - 1 - padding, kernel - 1 - padding))
    reversed_weights = weight.flip(2).permute(2, 0, 1).contiguous()
    about = Windows(kernel * outputs, outputs, inputs)
    d_x = dy.new_empty(samples, length, inputs)
    tensors = (rows, reversed_weights, dy.new_zeros(inputs), d_x)
    _kernels(about)[0](samples, length, rows.shape[1] * outputs, *(tensor.data_ptr() for tensor in tensors))
    return d_x.transpose(1, 2)


def _padded(x: torch.Tensor, padding: int) -> torch.Tensor:
    """(samples, length, channels) of (samples, channels, length), with zeros around."""
    rows = x.transpose(1, 2)
    return nn.functional.pad(rows, (0, 0, padding, padding)).contiguous() if padding else rows.contiguous()


@cache
def _kernels(about: Windows) -> tuple[Kernel, Kernel]:
    """Products of windows and their sums, for float32."""
    machine = host_machine(torch.float32)
    program = Program(Part(emit_window_products, about, machine), Part(emit_sums_of_windows, about, machine))
    return program.kernel("products"), program.kernel("sums")


class ImageConvolutionOfSeries(nn.Module):
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

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (samples, channels, length)."""
        image = x.unsqueeze(2).contiguous(memory_format=torch.channels_last)
        stride, padding = (1, self._stride), (0, self._padding)
        return nn.functional.conv2d(image, self.weight.unsqueeze(2), self.bias, stride, padding).squeeze(2)


class PoolingOfSeries(nn.Module):
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

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of (samples, channels, length)."""
        return nn.functional.max_pool2d(x.unsqueeze(2), *self._sizes).squeeze(2)


def _padding(layer: nn.Conv1d) -> int:
    assert not isinstance(layer.padding, str), "tables have numbers"
    return layer.padding[0]
