"""Conditional gated activation units (CGAU: Rieger, Hoegh and Hansen, *Client adaptation improves federated learning
with simulated non-IID clients*, arXiv:2007.04806)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["Gated"]


@dataclass(frozen=True)
class Gated(Layer):
    """``tanh(W_f x + V_f h) * sigmoid(W_g x + V_g h)``: h says whose sample it is, a column of V for each client.

    For a sample of nobody known, h is 1 / clients everywhere: the mean of all columns.

    >>> layer = Gated("gated1", inputs=128, outputs=256, clients=10)
    >>> layer.output_shape((128,)), layer.macs((128,)), layer.parameter_shapes["client_f"]
    ((256,), 65536, (256, 10))
    """

    kind: ClassVar[str] = "gated"
    inputs: int
    outputs: int
    clients: int

    @property
    def alone(self) -> bool:
        """No: each client has a column of its own."""
        return False

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """W_f and W_g (outputs, inputs), V_f and V_g (outputs, clients): a client adds its own in place of a bias."""
        weight, client = (self.outputs, self.inputs), (self.outputs, self.clients)
        return {"weight_f": weight, "weight_g": weight, "client_f": client, "client_g": client}

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape ``(outputs,)``."""
        if input_shape != (self.inputs,):
            raise self._misfit(input_shape, f"vectors of shape ({self.inputs},)")
        return (self.outputs,)

    def macs(self, input_shape: Shape) -> int:
        """One product for each weight; a client's column is taken, not multiplied."""
        self.output_shape(input_shape)
        return 2 * self.outputs * self.inputs
