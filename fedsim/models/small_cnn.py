"""A CNN that a sensor can afford: two convolutions and two fully connected layers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Strict

from fedsim.errors import UserError
from fedsim.models.extractors import convolutional_extractor
from fedsim.models.layers import Linear, Shape
from fedsim.models.settings import LayerModelSettings, Width, channel_axis
from fedsim.models.table import LayerTable

__all__ = ["SmallCnn"]

LEAST_PIXELS = 4  # halved twice by pooling


class SmallCnn(LayerModelSettings):
    """Two 5x5 convolutions with pooling, a hidden layer and a classifier, cut to fit the data set's images."""

    name: Literal["small_cnn"] = "small_cnn"
    channels: Annotated[tuple[Width, Width], Strict(False)] = (16, 32)
    """Output channels of the two convolutions."""
    hidden: Width = 128
    """Width of the hidden fully connected layer."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The layers for images (channels, height, width) of at least 4 x 4 pixels.

        Raises `UserError` when the data set declares sizes only, or its samples are no such images.

        >>> SmallCnn().table((1, 28, 28), 62).parameters()  # 416 + 12,832 + 200,832 + 7,998
        222078
        """
        shape, outputs = self.known_data(sample_shape, classes)
        if len(shape) != 3 or min(shape[1:]) < LEAST_PIXELS:
            raise UserError(
                f"model 'small_cnn' needs images (channels, height, width) of at least {LEAST_PIXELS} x {LEAST_PIXELS} "
                f"pixels, the data set has samples of shape {shape}; {channel_axis(shape, 3)}choose softmax or mlp, "
                "which take any shape"
            )
        return LayerTable(
            input_shape=shape,
            extractor=convolutional_extractor(shape, channels=self.channels, hidden=self.hidden),
            classifier=(Linear("fc2", inputs=self.hidden, outputs=outputs),),
            initialisation=self.initialisation,
        )
