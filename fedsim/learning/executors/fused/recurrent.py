"""Recurrent layers, all steps of which are one operation of PyTorch's automatic gradients."""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.compiled.geometry import LANES
from fedsim.learning.executors.compiled.machine_code import host_machine, product_kernels
from fedsim.learning.executors.compiled.products import MatrixShape
from fedsim.learning.executors.compiled.program import Kernel, Part, Program
from fedsim.learning.executors.fused.cells import CELLS
from fedsim.learning.executors.fused.recurrent_kernels import emit_steps, emit_steps_backward

__all__ = ["FusedRecurrent"]

WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


class FusedRecurrent(nn.Module):
    """Takes the place of a `torch.nn.GRU` or `torch.nn.LSTM` of one layer, with its parameters."""

    def __init__(self, layer: nn.GRU | nn.LSTM) -> None:
        """Make machine code where none is yet."""
        super().__init__()
        for name in WEIGHTS:
            self.register_parameter(name, getattr(layer, name))
        self._kind = layer.mode.lower()
        _kernels(self._kind, layer.hidden_size)

    @classmethod
    def of(cls, layer: nn.Module) -> Self | None:
        """What takes the place of *layer*, if there is a cell for it, and its states fill vectors."""
        return cls(layer) if isinstance(layer, nn.GRU | nn.LSTM) and layer.hidden_size % LANES == 0 else None

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        """The states, (samples, hidden, time), of (samples, inputs, time)."""
        weights = (self.get_parameter(name) for name in WEIGHTS)
        states: torch.Tensor = _Steps.apply(self._kind, series.float().permute(2, 0, 1), *weights)  # type: ignore[no-untyped-call]
        return states.permute(1, 2, 0)


@cache
def _kernels(kind: str, hidden: int) -> tuple[Kernel, Kernel]:
    """Forward and backward, for float32."""
    about = kind, hidden, host_machine(torch.float32)
    program = Program(Part(emit_steps, *about), Part(emit_steps_backward, *about))
    return program.kernel("steps"), program.kernel("steps_backward")


class _Steps(torch.autograd.Function):
    """(time, samples, hidden) of (time, samples, inputs), from states of zeros on."""

    @staticmethod
    def forward(
        ctx: Any,
        kind: str,
        series: torch.Tensor,
        inputs_weight: torch.Tensor,
        weight: torch.Tensor,
        inputs_bias: torch.Tensor,
        bias: torch.Tensor,
    ) -> torch.Tensor:
        (steps, samples, inputs), hidden = series.shape, weight.shape[1]
        rows = series.new_zeros(steps, samples, _filled(inputs))
        rows[:, :, :inputs] = series
        given = _given(rows.flatten(0, 1), inputs_weight, inputs_bias)
        states, memory = rows.new_empty(steps + 1, samples, hidden), rows.new_zeros(samples, hidden)
        states[0].zero_()
        kept = rows.new_empty(steps, samples, CELLS[kind].kept * hidden)
        tensors = (given, weight.t().contiguous(), bias, states, memory, kept)
        _kernels(kind, hidden)[0](steps, samples, *(tensor.data_ptr() for tensor in tensors))
        ctx.kind = kind
        ctx.save_for_backward(rows, inputs_weight, weight, states, kept)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, inputs_weight, weight, states, kept = ctx.saved_tensors
        d_states = gradients[0].contiguous()
        steps, samples, hidden = d_states.shape
        d_gates = x.new_empty(steps * samples, len(weight))
        d_given = d_gates if CELLS[ctx.kind].adds_shares else torch.empty_like(d_gates)
        d_state, d_memory = x.new_zeros(2, samples, hidden).unbind()
        tensors = (d_states, weight, states, kept, d_given, d_gates, d_state, d_memory)
        _kernels(ctx.kind, hidden)[1](steps, samples, *(tensor.data_ptr() for tensor in tensors))
        d_inputs_weight = _summed(d_given, x.flatten(0, 1))[:, : inputs_weight.shape[1]].contiguous()
        d_weight = _summed(d_gates, states[:-1].flatten(0, 1))
        d_series = _taken_back(d_given, inputs_weight).view(steps, samples, -1) if ctx.needs_input_grad[1] else None
        d_bias = d_gates.sum(dim=0)
        d_inputs_bias = d_bias.clone() if d_given is d_gates else d_given.sum(dim=0)
        return None, d_series, d_inputs_weight, d_weight, d_inputs_bias, d_bias


def _filled(inputs: int) -> int:
    """With zeros behind, so that rows fill vectors."""
    return -(-inputs // LANES) * LANES


def _given(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """``x W^T`` and the bias, of (rows, inputs) with zeros behind, and of (outputs, inputs)."""
    (outputs, inputs), filled = weight.shape, x.shape[1]
    kernels = product_kernels(MatrixShape(filled, outputs), x.dtype)
    made = x.new_empty(len(x), outputs)
    if kernels is None:  # into a tensor, which autocast leaves as it is
        return torch.addmm(bias, x[:, :inputs], weight.t(), out=made)
    turned = nn.functional.pad(weight.t(), (0, 0, 0, filled - inputs)).contiguous()
    kernels.times(len(x), x.data_ptr(), turned.data_ptr(), made.data_ptr())
    return made.add_(bias)


def _taken_back(d: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """``d W`` of (rows, outputs) and (outputs, inputs)."""
    kernels = product_kernels(MatrixShape(*weight.shape), d.dtype)
    if kernels is None:
        return torch.mm(d, weight)
    made, weight = d.new_empty(len(d), weight.shape[1]), weight.contiguous()
    kernels.times(len(d), d.data_ptr(), weight.data_ptr(), made.data_ptr())
    return made


def _summed(d: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """``d^T h`` of (rows, outputs) and (rows, inputs)."""
    outputs, inputs = d.shape[1], h.shape[1]
    kernels = product_kernels(MatrixShape(outputs, inputs), d.dtype)
    if kernels is None:
        return d.t() @ h
    total = d.new_empty(outputs, inputs)
    kernels.sum_of_products(len(d), d.data_ptr(), h.data_ptr(), total.data_ptr())
    return total
