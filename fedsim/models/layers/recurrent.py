"""Recurrent units along a series, in the variants that cuDNN and PyTorch compute; h and s are 0 before the first step.

A gated recurrent unit (Cho et al., EMNLP 2014):

    r = sigmoid(W_r x + b_r + U_r h + c_r)        z = sigmoid(W_z x + b_z + U_z h + c_z)
    n = tanh(W_n x + b_n + r * (U_n h + c_n))     h' = (1 - z) * n + z * h

A long short-term memory (Hochreiter and Schmidhuber, Neural Computation 1997) with a forget gate (Gers et al., Neural
Computation 2000), whose cell remembers s:

    i = sigmoid(W_i x + b_i + U_i h + c_i)        f = sigmoid(W_f x + b_f + U_f h + c_f)
    g = tanh(W_g x + b_g + U_g h + c_g)           o = sigmoid(W_o x + b_o + U_o h + c_o)
    s' = f * s + i * g                            h' = o * tanh(s')

Leaves out: several directions, peepholes, projections of h; layers are stacked by writing one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["Gru", "LastStep", "Lstm", "Recurrent"]


@dataclass(frozen=True)
class Recurrent(Layer):
    """What all recurrent units have in common: the hidden states at all steps, ``(inputs, time) -> (hidden, time)``."""

    gates: ClassVar[int]
    """That many matrices are stacked in each weight."""
    inputs: int
    hidden: int

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """W (gates hidden, inputs), U (gates hidden, hidden), b and c (gates hidden,), the gates in PyTorch's order."""
        rows = self.gates * self.hidden
        return {
            "weight_ih_l0": (rows, self.inputs),
            "weight_hh_l0": (rows, self.hidden),
            "bias_ih_l0": (rows,),
            "bias_hh_l0": (rows,),
        }

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(hidden, time)``."""
        if len(input_shape) != 2 or input_shape[0] != self.inputs:
            raise self._misfit(input_shape, f"series ({self.inputs}, time)")
        return (self.hidden, input_shape[1])

    def macs(self, input_shape: Shape) -> int:
        """Each step multiplies once with each weight of W and U; the gates' own products are activations."""
        _, steps = self.output_shape(input_shape)
        return steps * self.gates * self.hidden * (self.inputs + self.hidden)


@dataclass(frozen=True)
class Gru(Recurrent):
    """A gated recurrent unit; its gates are r, z and n.

    >>> gru = Gru("gru", inputs=14, hidden=64)
    >>> gru.output_shape((14, 30)), gru.macs((14, 30))  # 30 steps of 3 * 64 * (14 + 64) products
    ((64, 30), 449280)
    """

    kind: ClassVar[str] = "gru"
    gates: ClassVar[int] = 3


@dataclass(frozen=True)
class Lstm(Recurrent):
    """A long short-term memory; its gates are i, f, g and o.

    >>> lstm = Lstm("lstm", inputs=14, hidden=64)
    >>> lstm.output_shape((14, 30)), lstm.macs((14, 30))  # 30 steps of 4 * 64 * (14 + 64) products
    ((64, 30), 599040)
    """

    kind: ClassVar[str] = "lstm"
    gates: ClassVar[int] = 4


@dataclass(frozen=True)
class LastStep(Layer):
    """What a series ends with: ``(channels, time) -> (channels,)``.

    >>> LastStep("last").output_shape((64, 30))
    (64,)
    """

    kind: ClassVar[str] = "last_step"

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(channels,)``."""
        if len(input_shape) != 2:
            raise self._misfit(input_shape, "series (channels, time)")
        return (input_shape[0],)
