"""Convolution by the kernels of `place_kernels`, as one operation of PyTorch's automatic gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from fedsim.learning.kernels.machine_code import layer_kernel
from fedsim.learning.kernels.shapes import Places

__all__ = ["channels_last", "convolved", "lying_by_place"]


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """*x*, (samples, channels, height, width), with its channels side by side in memory."""
    return x.contiguous(memory_format=torch.channels_last)


def lying_by_place(weight: torch.Tensor) -> torch.Tensor:
    """The same weight, which lies in memory as (places, inputs, outputs)."""
    return _by_place(weight).contiguous().permute(3, 2, 0, 1).view_as(weight)


def convolved(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int) -> torch.Tensor:
    """*x*, (samples, inputs, height, width), by a weight of (outputs, inputs, rows, columns), or without rows.

    There are *padding* zeros on the left and the right, and half as many above and below as the kernel has other rows.
    """
    made: torch.Tensor = _Convolution.apply(x, weight, bias, padding)  # type: ignore[no-untyped-call]
    return made


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int
    ) -> torch.Tensor:
        if x.dtype != weight.dtype or x.shape[1] != weight.shape[1]:  # kernels would read whatever lies there
            raise ValueError(f"{x.dtype} {tuple(x.shape)} and weights of {weight.dtype} {tuple(weight.shape)}")
        x, weights = channels_last(x), _by_place(weight).contiguous()
        ctx.about = about = _places(x.shape[3], weights.shape, padding, bias is not None)
        ctx.is_of_series = weight.dim() == 3
        ctx.save_for_backward(x, weights)
        return _made(x, weights, bias, about)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (x, weights), about, dy = ctx.saved_tensors, ctx.about, channels_last(gradients[0])
        dx = None
        if ctx.needs_input_grad[0]:
            turned = torch.empty_like(weights)
            layer_kernel("turned_weights", about)(weights.data_ptr(), turned.data_ptr())
            dx = _made(dy, turned, None, about.back)
        d_weight, d_bias = torch.empty_like(weights), x.new_empty(about.outputs) if about.biased else None
        if not len(x):  # where there is nothing to add up, the kernel writes nothing
            d_weight.zero_()
            d_bias = None if d_bias is None else d_bias.zero_()
        addresses = x.data_ptr(), dy.data_ptr(), d_weight.data_ptr(), 0 if d_bias is None else d_bias.data_ptr()
        layer_kernel("weight_gradient", about)(len(x), x.shape[2], *addresses)
        d_weight = d_weight.permute(3, 2, 0, 1)
        return dx, d_weight.squeeze(2) if ctx.is_of_series else d_weight, d_bias, None


def _by_place(weight: torch.Tensor) -> torch.Tensor:
    """(rows, columns, inputs, outputs)."""
    return weight.permute(2, 3, 1, 0) if weight.dim() == 4 else weight.permute(2, 1, 0).unsqueeze(0)


@cache
def _places(width: int, weights: Sequence[int], padding: int, biased: bool) -> Places:
    rows, columns, inputs, outputs = weights
    return Places(width, inputs, outputs, rows, columns, padding, biased=biased)


def _made(x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None, about: Places) -> torch.Tensor:
    samples, _, height, _ = x.shape
    y = torch.empty((samples, about.outputs, height, about.made), dtype=x.dtype, memory_format=torch.channels_last)
    addresses = x.data_ptr(), weights.data_ptr(), 0 if bias is None else bias.data_ptr(), y.data_ptr()
    layer_kernel("convolution", about)(samples, height, *addresses)
    return y
