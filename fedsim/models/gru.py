"""Gated recurrent units on series such as a turbofan's sensors (Cho et al., EMNLP 2014): the last state is classified.

Leaves out: both directions, dropout between layers, and series of unequal length.
"""

from __future__ import annotations

from typing import Annotated, Literal

from annotated_types import Interval

from fedsim.errors import UserError
from fedsim.models.layers import Gru, LastStep, Layer, Linear, Shape
from fedsim.models.settings import LayerModelSettings, Width, channel_axis
from fedsim.models.table import LayerTable

__all__ = ["GruModel"]


class GruModel(LayerModelSettings):
    """Gated recurrent units on series (channels, time); one linear layer reads the last hidden state."""

    name: Literal["gru"] = "gru"
    hidden: Width = 64
    """Width of each layer's hidden state."""
    layers: Annotated[int, Interval(ge=1, le=100)] = 1
    """Recurrent layers, each on the states of the one before."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The recurrent layers are the extractor.

        Raises `UserError` when the data set declares sizes only, or when its samples are no series (channels, time).

        >>> table = GruModel(hidden=64).table((14, 30), 1)
        >>> table.parameters()  # 3 * 64 * (14 + 64) + 6 * 64, and 64 + 1
        15425
        """
        shape, outputs = self.known_data(sample_shape, classes)
        if len(shape) != 2:
            raise UserError(
                f"model 'gru' needs series (channels, time), the data set has samples of shape {shape}; "
                f"{channel_axis(shape, 2)}choose softmax or mlp, which take any shape"
            )
        extractor: list[Layer] = []
        inputs = shape[0]
        for number in range(1, self.layers + 1):
            extractor.append(Gru(f"gru{number}", inputs=inputs, hidden=self.hidden))
            inputs = self.hidden
        return LayerTable(
            input_shape=shape,
            extractor=(*extractor, LastStep("last")),
            classifier=(Linear("fc", inputs=self.hidden, outputs=outputs),),
            initialisation=self.initialisation,
        )
