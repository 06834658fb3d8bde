"""A multi-layer perceptron: fully connected layers with rectifiers between them."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Annotated, Literal

from annotated_types import Len

from fedsim.models.layers import Flatten, Layer, Linear, ReLU, Shape
from fedsim.models.settings import LayerModelSettings, Width
from fedsim.models.table import LayerTable
from fedsim.settings import Several

__all__ = ["Mlp"]


class Mlp(LayerModelSettings):
    """Fully connected ReLU layers on the flattened sample; the classifier is the last layer."""

    name: Literal["mlp"] = "mlp"
    hidden: Annotated[Several[Width], Len(1, 100)] = (64,)
    """Widths of the hidden layers, first to last (for none, use softmax)."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """Layers from the data set's sample shape over *hidden* to its classes.

        Raises `UserError` when the data set declares sizes only.

        >>> Mlp(hidden=(64,)).table((1, 8, 8), 10).parameters()  # 64 * 64 + 64, and 64 * 10 + 10
        4810
        """
        shape, outputs = self.known_data(sample_shape, classes)
        widths = (prod(shape), *self.hidden)
        extractor: list[Layer] = [Flatten("flatten")]
        for number, (inputs, width) in enumerate(pairwise(widths), start=1):
            extractor += [Linear(f"fc{number}", inputs=inputs, outputs=width), ReLU(f"relu{number}")]
        return LayerTable(
            input_shape=shape,
            extractor=tuple(extractor),
            classifier=(Linear(f"fc{len(widths)}", inputs=widths[-1], outputs=outputs),),
            initialisation=self.initialisation,
        )
