"""What models of recurrent layers have in common: layers on a series, one on the other; the last state is read.

Leaves out: both directions, dropout between layers, fully connected layers before the last one, and series of unequal
length.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from annotated_types import Interval

from fedsim.errors import UserError
from fedsim.models.layers import LastStep, Layer, Linear, Recurrent, Shape
from fedsim.models.settings import LayerModelSettings, Width, channel_axis
from fedsim.models.table import LayerTable

__all__ = ["RecurrentModelSettings"]


class RecurrentModelSettings(LayerModelSettings):
    """Recurrent layers of one kind and width, and a linear one."""

    UNIT: ClassVar[type[Recurrent]]
    """The kind of each layer."""

    hidden: Width = 64
    """Width of each layer's hidden state."""
    layers: Annotated[int, Interval(ge=1, le=100)] = 1
    """Recurrent layers, each on the states of the one before."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The recurrent layers are the extractor.

        Raises `UserError` when the data set declares sizes only, or when its samples are no series (channels, time).
        """
        shape, outputs = self.known_data(sample_shape, classes)
        if len(shape) != 2:
            raise UserError(
                f"model {self.name!r} needs series (channels, time), the data set has samples of shape {shape}; "
                f"{channel_axis(shape, 2)}choose softmax or mlp, which take any shape"
            )
        extractor: list[Layer] = []
        inputs = shape[0]
        for number in range(1, self.layers + 1):
            extractor.append(self.UNIT(f"{self.UNIT.kind}{number}", inputs=inputs, hidden=self.hidden))
            inputs = self.hidden
        return LayerTable(
            input_shape=shape,
            extractor=(*extractor, LastStep("last")),
            classifier=(Linear("fc", inputs=self.hidden, outputs=outputs),),
            initialisation=self.initialisation,
        )
