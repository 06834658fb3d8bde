"""Recurrent layers, all steps of which are one operation of PyTorch's automatic gradients."""

from __future__ import annotations

from functools import cache
from typing import Any, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.compiled.geometry import LANES
from fedsim.learning.executors.compiled.machine_code import host_machine
from fedsim.learning.executors.compiled.program import Kernel, Part, Program
from fedsim.learning.executors.fused.cells import CELLS
from fedsim.learning.executors.fused.recurrent_kernels import emit_steps, emit_steps_backward
from fedsim.learning.executors.fused.rounding import rounds_in_instructions
from fedsim.learning.executors.matrix import Matrix

__all__ = ["FusedRecurrent"]

WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
ENOUGH_ROUNDED = 16
"""Samples from which on PyTorch's LSTM with rounded factors is faster, on a Zen 5; its GRU never is."""


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
        weights: list[torch.Tensor] = [self.get_parameter(name) for name in WEIGHTS]
        rows = series.permute(2, 0, 1)
        if self._kind == "lstm" and rounds_in_instructions() and len(series) >= ENOUGH_ROUNDED:
            start = rows.new_zeros(1, len(series), weights[1].shape[1])
            states, *_ = torch.lstm(rows, (start, start), weights, True, 1, 0.0, self.training, False, False)
        else:
            with torch.autocast("cpu", enabled=False):
                states = _Steps.apply(self._kind, rows.float(), *weights)  # type: ignore[no-untyped-call]
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
        zeros = -inputs % LANES  # behind the inputs, so that rows fill vectors
        rows, filled = (nn.functional.pad(one, (0, zeros)).contiguous() for one in (series, inputs_weight))
        given = Matrix(filled.t(), many_rows=True).times(rows).add_(inputs_bias)
        states, memory = rows.new_empty(steps + 1, samples, hidden), rows.new_zeros(samples, hidden)
        states[0].zero_()
        kept = rows.new_empty(steps, samples, CELLS[kind].kept * hidden)
        tensors = (given, weight.t().contiguous(), bias, states, memory, kept)
        _kernels(kind, hidden)[0](steps, samples, *(tensor.data_ptr() for tensor in tensors))
        ctx.kind, ctx.inputs = kind, inputs
        ctx.save_for_backward(rows, filled, weight, states, kept)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, filled, weight, states, kept = ctx.saved_tensors
        d_states = gradients[0].contiguous()
        steps, samples, hidden = d_states.shape
        d_gates = x.new_empty(steps, samples, len(weight))
        d_given = d_gates if CELLS[ctx.kind].adds_shares else torch.empty_like(d_gates)
        d_state, d_memory = x.new_zeros(2, samples, hidden).unbind()
        tensors = (d_states, weight, states, kept, d_given, d_gates, d_state, d_memory)
        _kernels(ctx.kind, hidden)[1](steps, samples, *(tensor.data_ptr() for tensor in tensors))
        d_weight = Matrix(weight, many_rows=True).sum_of_products(d_gates, states[:-1])
        d_filled, own = Matrix(filled, many_rows=True).sum_of_products(d_given, x), slice(ctx.inputs)
        d_inputs_weight = d_filled[:, own].contiguous()
        d_series = Matrix(filled[:, own], many_rows=True).times(d_given) if ctx.needs_input_grad[1] else None
        d_bias = d_gates.flatten(0, 1).sum(dim=0)
        d_inputs_bias = d_bias.clone() if d_given is d_gates else d_given.flatten(0, 1).sum(dim=0)
        return None, d_series, d_inputs_weight, d_weight, d_inputs_bias, d_bias
