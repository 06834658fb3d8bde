"""Dense layers: large ones, with products in machine code and steps in the backward pass, and all others.

PyTorch's library packs a matrix before it multiplies a few rows with it, which takes as long as the product itself.
A step of plain SGD is taken in the backward pass: in float32, no gradient of many megabytes is written and read again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from fedsim.learning.executors.matrix import LARGE, Matrix, kernels_for
from fedsim.models.parted import PartedModule

__all__ = ["FusedDense", "SmallDense", "steps_in_passing"]

ENOUGH_ROUNDED = 32
"""Samples from which on products of rounded factors are faster than kernels without tiles, on a Zen 5, although all
weights have to be rounded."""
ENOUGH_PRODUCTS = 2**20
"""Of a layer with fewer, rounding the factors takes longer than it saves, on a Zen 5."""


class FusedDense(nn.Module):
    """Takes the place of a large `torch.nn.Linear` with a bias, with its parameters."""

    rate: float | None = None
    """The learning rate of steps that it takes by itself; then its parameters get no gradient. None: it takes none."""

    def __init__(self, layer: nn.Linear) -> None:
        """Make machine code where none is yet, if PyTorch's library is slower."""
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        kernels_for((layer.out_features, layer.in_features), torch.float32)

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        if not isinstance(layer, nn.Linear) or layer.bias is None or layer.weight.numel() < LARGE:
            return None
        return cls(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(samples, outputs) of (samples, inputs)."""
        made: torch.Tensor = _Dense.apply(x, self.weight, self.bias, self.rate)  # type: ignore[no-untyped-call]
        return made


class SmallDense(nn.Module):
    """Takes the place of a `torch.nn.Linear` that is no `FusedDense`, with its parameters.

    Under autocast its factors are rounded only where there is much to multiply.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        return cls(layer) if isinstance(layer, nn.Linear) else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., outputs) of (..., inputs)."""
        if x.numel() * len(self.weight) >= ENOUGH_PRODUCTS:
            return linear(x, self.weight, self.bias)
        with torch.autocast("cpu", enabled=False):
            return linear(x.float(), self.weight, self.bias)


def steps_in_passing(module: PartedModule, parts: Iterable[str], rate: float | None) -> None:
    """Let such layers of these *parts* take plain steps of that *rate* by themselves; None: let them take none."""
    trained = {id(weight) for part in parts for weight in module.part_parameters(part).values()}
    for layer in module.modules():
        if isinstance(layer, FusedDense):
            layer.rate = rate if id(layer.weight) in trained else None


class _Dense(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, rate: float | None
    ) -> torch.Tensor:
        # Not by save_for_backward, which refuses a weight that has changed: it is the backward pass that changes it.
        ctx.trained, ctx.rate, matrix = (weight, bias), rate, Matrix(weight)
        if torch.is_autocast_enabled("cpu"):
            if len(x) >= ENOUGH_ROUNDED or not matrix.has_vector_kernels:
                matrix = Matrix(weight.to(torch.get_autocast_dtype("cpu")))
            x, bias = x.to(matrix.weight.dtype), bias.to(matrix.weight.dtype)
        ctx.x, ctx.matrix = x, matrix
        return matrix.times_transposed(x, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, matrix, (weight, bias) = ctx.x, ctx.matrix, ctx.trained
        d = gradients[0].contiguous()
        d_x = matrix.times(d) if ctx.needs_input_grad[0] else None
        if ctx.rate is None:
            return d_x, matrix.sum_of_products(d, x).to(weight.dtype), d.sum(dim=0).to(bias.dtype), None
        if matrix.weight is weight:
            matrix.step(d, x, ctx.rate)
        else:
            weight.sub_(matrix.sum_of_products(d, x), alpha=ctx.rate)
        bias.sub_(d.sum(dim=0), alpha=ctx.rate)
        return d_x, None, None, None
