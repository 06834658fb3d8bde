"""Convolution by the kernels of `place_kernels`, as one operation of PyTorch's automatic gradients."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.compiled.machine_code import host_machine
from fedsim.learning.executors.compiled.program import Kernel, Part, Program
from fedsim.learning.executors.fused.place_kernels import Places, emit_convolution, emit_weight_gradient

__all__ = ["convolved", "lying_by_place"]


def lying_by_place(weight: torch.Tensor) -> torch.Tensor:
    """The same weight, which lies in memory as (places, inputs, outputs)."""
    return _by_place(_of_images(weight)).contiguous().permute(3, 2, 0, 1).view_as(weight)


def convolved(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int) -> torch.Tensor:
    """*x*, (samples, inputs, height, width), by a weight of (outputs, inputs, rows, columns) or (outputs, inputs, columns).

    There are *padding* zeros on the left and the right, and half as many above and below as the kernel has other rows.
    """
    made: torch.Tensor = _Convolution.apply(x, weight, bias, padding)  # type: ignore[no-untyped-call]
    return made


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: int
    ) -> torch.Tensor:
        x, kernel = _channels_last(x), _of_images(weight)
        outputs, inputs, rows, columns = kernel.shape
        ctx.about = about = Places(x.shape[3], inputs, outputs, rows, columns, padding, biased=bias is not None)
        ctx.save_for_backward(x, weight)
        return _made(x, _by_place(kernel).contiguous(), bias, about)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (x, weight), about, dy = ctx.saved_tensors, ctx.about, _channels_last(gradients[0])
        dx = None
        if ctx.needs_input_grad[0]:
            dx = _made(dy, _of_images(weight).permute(2, 3, 0, 1).contiguous(), None, about.back)
        d_weight = x.new_empty(about.rows, about.columns, about.inputs, about.outputs)
        addresses = x.data_ptr(), dy.data_ptr(), d_weight.data_ptr()
        _kernels(about)[1](len(x), x.shape[2], *addresses)
        d_weight = d_weight.permute(3, 2, 0, 1).view_as(weight)
        return dx, d_weight, dy.sum(dim=(0, 2, 3)) if about.biased else None, None


def _of_images(weight: torch.Tensor) -> torch.Tensor:
    return weight.unsqueeze(2) if weight.dim() == 3 else weight


def _by_place(weight: torch.Tensor) -> torch.Tensor:
    return weight.permute(2, 3, 1, 0)


def _made(x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor | None, about: Places) -> torch.Tensor:
    samples, _, height, _ = x.shape
    y = torch.empty((samples, about.outputs, height, about.made), memory_format=torch.channels_last)
    addresses = x.data_ptr(), weights.data_ptr(), 0 if bias is None else bias.data_ptr(), y.data_ptr()
    _kernels(about)[0](samples, height, *addresses)
    return y


@cache
def _kernels(about: Places) -> tuple[Kernel, Kernel]:
    """The convolution and the gradient of its weights, for float32."""
    machine = host_machine(torch.float32)
    program = Program(Part(emit_convolution, about, machine), Part(emit_weight_gradient, about, machine))
    return program.kernel("convolution"), program.kernel("weight_gradient")


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)
