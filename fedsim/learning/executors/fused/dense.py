"""Fully connected layers that take their step of SGD in the backward pass.

A large matrix's gradient would be written to memory, read, and added; here it is added as it is made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import torch
from torch import nn

from fedsim.models.parted import PartedModule

__all__ = ["LARGE", "SteppingDense", "steps_in_passing"]

LARGE = 2**16
"""Weights from which on a matrix is worth it."""


class SteppingDense(nn.Module):
    """Takes the place of a large `torch.nn.Linear` with a bias, with its parameters."""

    rate: float | None = None
    """The learning rate of steps that it takes by itself; then its parameters get no gradient. None: it takes none."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if it is such a one."""
        if not isinstance(layer, nn.Linear) or layer.bias is None or layer.weight.numel() < LARGE:
            return None
        return cls(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(samples, outputs) of (samples, inputs)."""
        if self.rate is None or not torch.is_grad_enabled():
            return nn.functional.linear(x, self.weight, self.bias)
        made: torch.Tensor = _Stepping.apply(x, self.weight, self.bias, self.rate)  # type: ignore[no-untyped-call]
        return made


def steps_in_passing(module: PartedModule, parts: Iterable[str], rate: float | None) -> None:
    """Let such layers of these *parts* take plain steps of that *rate* by themselves; None: let them take none."""
    trained = {id(weight) for part in parts for weight in module.part_parameters(part).values()}
    for layer in module.modules():
        if isinstance(layer, SteppingDense):
            layer.rate = rate if id(layer.weight) in trained else None


class _Stepping(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, rate: float) -> torch.Tensor:
        # Not by save_for_backward, which refuses a weight that has changed: it is the backward pass that changes it.
        ctx.trained, ctx.rate, factor = (weight, bias), rate, weight
        if torch.is_autocast_enabled("cpu"):
            reduced = torch.get_autocast_dtype("cpu")
            x, factor, bias = x.to(reduced), weight.to(reduced), bias.to(reduced)
        ctx.factors = x, factor
        return nn.functional.linear(x, factor, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (x, factor), (weight, bias), (d,) = ctx.factors, ctx.trained, gradients
        d_x = d @ factor if ctx.needs_input_grad[0] else None
        if factor is weight:
            weight.addmm_(d.t(), x, alpha=-ctx.rate)
        else:
            weight.sub_(d.t() @ x, alpha=ctx.rate)
        bias.sub_(d.sum(dim=0), alpha=ctx.rate)
        return d_x, None, None, None
