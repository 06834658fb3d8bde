"""A gated recurrent unit along a series (Cho et al., EMNLP 2014), in the variant that cuDNN and PyTorch compute.

    r = sigmoid(W_r x + b_r + U_r h + c_r)        z = sigmoid(W_z x + b_z + U_z h + c_z)
    n = tanh(W_n x + b_n + r * (U_n h + c_n))     h' = (1 - z) * n + z * h,    h = 0 before the first step

Leaves out: several directions; layers are stacked by writing one after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["GATES", "Gru", "LastStep"]

GATES = 3
"""r, z and n: that many matrices are stacked in each weight."""


@dataclass(frozen=True)
class Gru(Layer):
    """The hidden states at all steps of a series, channels first: ``(inputs, time) -> (hidden, time)``.

    >>> gru = Gru("gru", inputs=14, hidden=64)
    >>> gru.output_shape((14, 30)), gru.macs((14, 30))  # 30 steps of 3 * 64 * (14 + 64) products
    ((64, 30), 449280)
    """

    kind: ClassVar[str] = "gru"
    inputs: int
    hidden: int

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """W (3 hidden, inputs), U (3 hidden, hidden), b and c (3 hidden,), the gates in the order r, z, n."""
        rows = GATES * self.hidden
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
        return steps * GATES * self.hidden * (self.inputs + self.hidden)


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
