"""Recurrent layers, all steps of which are one operation of PyTorch's automatic gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from fedsim.learning.executors.fused.rounding import rounds_in_instructions
from fedsim.learning.executors.matrix import Matrix
from fedsim.learning.kernels.machine_code import cell, has_kernels, layer_kernel
from fedsim.learning.kernels.shapes import LANES, Kernel
from fedsim.models.torch_layers import LastStepModule

__all__ = ["FusedRecurrent"]

WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


class FusedRecurrent(nn.Module):
    """Takes the place of a `torch.nn.GRU` or `torch.nn.LSTM` of one layer, with its parameters."""

    def __init__(self, layer: nn.GRU | nn.LSTM, *, last: bool) -> None:
        """If *last*, only the states after the last step come out, otherwise those after each step."""
        super().__init__()
        for name in WEIGHTS:
            self.register_parameter(name, getattr(layer, name))
        self.last, self._kind = last, layer.mode.lower()

    @classmethod
    def of(cls, layer: nn.Module, behind: Sequence[nn.Module] = ()) -> Self | None:
        """What takes the place of *layer*, if there is a cell for it, and its states fill vectors.

        *behind* are the layers that follow. If the first of them picks the last step, it takes its place too.
        """
        if not (has_kernels() and isinstance(layer, nn.GRU | nn.LSTM)) or layer.hidden_size % LANES:
            return None
        return cls(layer, last=len(behind) > 0 and isinstance(behind[0], LastStepModule))

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        """The states, (samples, hidden, time), of (samples, inputs, time); or the last ones, (samples, hidden)."""
        weights: list[torch.Tensor] = [self.get_parameter(name) for name in WEIGHTS]
        function = _RoundedSteps if cell(self._kind).adds_shares and rounds_in_instructions() else _Steps
        with torch.autocast("cpu", enabled=False):
            rows = series.permute(2, 0, 1).float()
            states: torch.Tensor = function.apply(self._kind, self.last, rows, *weights)  # type: ignore[no-untyped-call]
        return states if self.last else states.permute(1, 2, 0)


def _run(kernel: Kernel, steps: int, samples: int, *tensors: torch.Tensor) -> None:
    kernel(steps, samples, *(tensor.data_ptr() for tensor in tensors))


class _Steps(torch.autograd.Function):
    """(time, samples, hidden) of (time, samples, inputs), from states of zeros on; or the last (samples, hidden)."""

    @staticmethod
    def forward(ctx: Any, kind: str, last: bool, series: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        inputs_weight, weight, inputs_bias, bias = weights
        (steps, samples, inputs), hidden = series.shape, weight.shape[1]
        zeros = -inputs % LANES  # behind the inputs, so that rows fill vectors
        rows, filled = (nn.functional.pad(one, (0, zeros)).contiguous() for one in (series, inputs_weight))
        given = Matrix(filled.t(), many_rows=True).times(rows).add_(inputs_bias)
        states, memory, kept = _room(kind, steps, samples, weight)
        turned = weight.t().contiguous()
        _run(layer_kernel("steps", kind, hidden), steps, samples, given, turned, bias, states, memory, kept)
        ctx.kind, ctx.last, ctx.inputs = kind, last, inputs
        ctx.save_for_backward(rows, filled, weight, states, kept)
        return states[-1] if last else states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, filled, weight, states, kept = ctx.saved_tensors
        d_gates = x.new_empty(len(x), x.shape[1], len(weight))
        d_given = d_gates if cell(ctx.kind).adds_shares else torch.empty_like(d_gates)
        kernel = layer_kernel("steps_backward", ctx.kind, states.shape[2], ctx.last)
        d_states, at_the_end = _begun(gradients[0], ctx.last)
        _run(kernel, *x.shape[:2], *d_states, weight, states, kept, d_given, d_gates, *at_the_end)
        d_weight = Matrix(weight, many_rows=True).sum_of_products(d_gates, states[:-1])
        d_filled, own = Matrix(filled, many_rows=True).sum_of_products(d_given, x), slice(ctx.inputs)
        d_inputs_weight = d_filled[:, own].contiguous()
        d_series = Matrix(filled[:, own], many_rows=True).times(d_given) if ctx.needs_input_grad[2] else None
        d_bias = d_gates.flatten(0, 1).sum(dim=0)
        d_inputs_bias = d_bias.clone() if d_given is d_gates else d_given.flatten(0, 1).sum(dim=0)
        return None, None, d_series, d_inputs_weight, d_weight, d_inputs_bias, d_bias


class _RoundedSteps(torch.autograd.Function):
    """The same with the factors of all products rounded to bfloat16, for a cell that adds shares.

    The states before a step and its inputs lie in one row, and so do both weights: a step has one product.
    """

    @staticmethod
    def forward(ctx: Any, kind: str, last: bool, series: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        inputs_weight, weight, inputs_bias, bias = weights
        (steps, samples, inputs), hidden = series.shape, weight.shape[1]
        used = hidden + inputs
        width = used + used % 2  # a row has whole pairs
        rows = weight.new_zeros(steps + 1, samples, width, dtype=torch.bfloat16)
        rows[:-1, :, hidden:used] = series.bfloat16()
        both = nn.functional.pad(torch.cat([weight, inputs_weight], dim=1).bfloat16(), (0, width - used))
        pairs = both.view(torch.int32).t().contiguous()  # (width / 2, gates hidden), two columns in each number
        states, memory, kept = _room(kind, steps, samples, weight)
        kernel = layer_kernel("rounded_steps", kind, hidden, width)
        _run(kernel, steps, samples, rows, inputs_bias, pairs, bias, states, memory, kept)
        ctx.kind, ctx.last, ctx.used = kind, last, used
        ctx.save_for_backward(rows, both, states, kept)
        return states[-1] if last else states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        rows, both, states, kept = ctx.saved_tensors
        (steps, samples, _), hidden = kept.shape, states.shape[2]
        own, of_inputs = both[:, :hidden], slice(hidden, ctx.used)
        pairs = own.reshape(-1, 2, hidden).transpose(1, 2).contiguous()  # two rows beside each other, by column
        d_gates, d_bias = rows.new_empty(steps, samples, len(both)), kept.new_zeros(len(both))
        kernel = layer_kernel("rounded_steps_backward", ctx.kind, hidden, ctx.last)
        d_states, at_the_end = _begun(gradients[0], ctx.last)
        _run(kernel, steps, samples, *d_states, pairs, states, kept, d_gates, d_bias, *at_the_end)
        d_both = d_gates.flatten(0, 1).t() @ rows[:-1].flatten(0, 1)
        d_weight, d_inputs_weight = (d_both[:, some].float().contiguous() for some in (slice(hidden), of_inputs))
        d_series = (d_gates @ both[:, of_inputs]).float() if ctx.needs_input_grad[2] else None
        return None, None, d_series, d_inputs_weight, d_weight, d_bias, d_bias.clone()


def _room(kind: str, steps: int, samples: int, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What a forward kernel fills: states, of which the first are zeros, memory of zeros, and what gradients need."""
    hidden = weight.shape[1]
    states = weight.new_empty(steps + 1, samples, hidden)
    states[0].zero_()
    kept = weight.new_empty(steps, samples, cell(kind).kept * hidden)
    return states, weight.new_zeros(samples, hidden), kept


def _begun(gradient: torch.Tensor, last: bool) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """What a backward kernel begins with: gradients of the states after each step, and then of one state and memory.

    If *gradient* is that of the *last* states alone, it is the second one, and there is none of each step.
    """
    if last:
        d_state = gradient.clone(memory_format=torch.contiguous_format)
        return [], [d_state, torch.zeros_like(d_state)]
    d_states = gradient.contiguous()
    return [d_states], [torch.zeros_like(d_states[0]), torch.zeros_like(d_states[0])]
