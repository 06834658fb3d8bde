"""The layer that fuses the features of two models (Yao et al., ICIP 2019): E_g of the global, E_l of the local one.

Leaves out: attention between the two streams, which only the authors' public code has.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal, TypeAlias

from fedsim.models.layers.layer import Layer, Shape

__all__ = ["Fusion", "Operator"]

Operator: TypeAlias = Literal["conv", "multi", "single"]


@dataclass(frozen=True)
class Fusion(Layer):
    """Features of *channels* channels out of two streams, local and global, of as many channels each.

    ``conv``: a 1x1 convolution without bias, W (E_g, E_l). ``multi``: ``g E_g + (1 - g) E_l`` with a gate for each
    channel. ``single``: the same with one gate for all. Where there is no global stream, the local one is both: then
    ``multi`` and ``single`` change nothing.

    >>> fusion = Fusion("fusion", channels=32, operator="conv")
    >>> fusion.parameter_shapes, fusion.macs((32, 7, 7))  # 2 * 32 * 32 products for each of 49 pixels
    ({'weight': (32, 64)}, 100352)
    >>> Fusion("fusion", channels=32, operator="multi").parameter_shapes
    {'gate': (32,)}
    """

    kind: ClassVar[str] = "fusion"
    channels: int
    operator: Operator

    @property
    def sizes(self) -> dict[str, int]:
        """The channels alone."""
        return {"channels": self.channels}

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Weight (channels, 2 channels), those of the global stream first; or gate (channels,) or (1,)."""
        if self.operator == "conv":
            return {"weight": (self.channels, 2 * self.channels)}
        return {"gate": (self.channels if self.operator == "multi" else 1,)}

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if input_shape[:1] != (self.channels,):
            raise self._misfit(input_shape, f"features of {self.channels} channels")
        return input_shape

    def macs(self, input_shape: Shape) -> int:
        """Of ``conv`` one product per weight at each position; gates are counted as activations are, as 0."""
        positions = prod(self.output_shape(input_shape)[1:])
        return 2 * self.channels**2 * positions if self.operator == "conv" else 0
