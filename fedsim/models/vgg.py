"""The VGG networks for small images (Simonyan and Zisserman, ICLR 2015, Table 1, configurations A, B, D and E).

Both papers that federate them keep the 3 x 3 convolutions with bias and replace the head, which was made for 224 x 224
pixels: FlexiFed (Wang et al., WWW 2023) adds batch normalisation and has layers of 4096 units behind the 512 features
that 32 x 32 pixels leave; SPATL (Yu et al., SC 2022) has layers of 512 units and no normalisation. Dropout stands where
Simonyan and Zisserman have it, behind the first two fully connected layers. They found Glorot's start to do (section
3.1), which is the default here. Leaves out: configuration C, with its 1 x 1 convolutions.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from fedsim.errors import UserError
from fedsim.models.layers import (
    Conv2d,
    Dropout,
    Flatten,
    Layer,
    Linear,
    MaxPool2d,
    Normalisation,
    ReLU,
    Shape,
    normalising,
    through,
)
from fedsim.models.settings import PublishedModelSettings, channel_axis
from fedsim.models.table import LayerTable
from fedsim.settings import Probability

__all__ = ["Vgg"]

CHANNELS = (64, 128, 256, 512, 512)  # of the convolutions in each stage; a stage ends with pooling
CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
UNITS = {"wide": 4096, "narrow": 512}
PUBLISHED: dict[str, Normalisation] = {"wide": "batch", "narrow": "none"}
LEAST_PIXELS = 32  # halved five times


def _as_published(others: dict[str, Any]) -> Normalisation:
    """What the head's paper has: batch where it is wide, none where it is narrow."""
    return PUBLISHED.get(others.get("head", ""), "none")  # without a head that is known, that is refused


class Vgg(PublishedModelSettings):
    """VGG-11, 13, 16 or 19 for images of 32x32 pixels or more, as FlexiFed (wide) or SPATL (narrow) train it."""

    PAPER_SHAPE: ClassVar[Shape] = (3, 32, 32)
    PAPER_CLASSES: ClassVar[int] = 10

    name: Literal["vgg"] = "vgg"
    depth: Literal[11, 13, 16, 19] = 11
    """Convolutions and fully connected layers."""
    head: Literal["wide", "narrow"] = "wide"
    """wide: batch normalisation, and two hidden layers of 4096 units (FlexiFed); narrow: no normalisation, and two
    hidden layers of 512 units (SPATL)."""
    normalisation: Normalisation = Field(default_factory=_as_published)
    """What is behind each convolution: batch (batch normalisation), group (group normalisation of two groups; for
    clients of few classes) or none."""
    dropout: Probability = 0.5
    """Chance of each hidden unit of the head to be left out of a training step."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The convolutions are the extractor, the three fully connected layers the classifier.

        Images are (channels, height, width), CIFAR-10's when the data set declares sizes only. Raises `UserError` when
        they are smaller than 32 x 32 pixels, or when there are more classes than outputs.

        >>> table = Vgg(depth=11, head="narrow").table((3, 32, 32), 10)
        >>> table.parameters("extractor"), table.parameters("classifier")
        (9220480, 530442)
        >>> Vgg(depth=19).table(None, None).parameters()
        38958922
        """
        shape, outputs = self.published_data(sample_shape, classes)
        if len(shape) != 3 or min(shape[1:]) < LEAST_PIXELS:
            others = "a model that takes small ones (resnet, small_cnn)"
            way_out = f"larger images, or {others}" if len(shape) == 3 else "softmax or mlp, which take any shape"
            raise UserError(
                f"model 'vgg' needs images (channels, height, width) of at least {LEAST_PIXELS} x {LEAST_PIXELS} "
                f"pixels, the data set has samples of shape {shape}; {channel_axis(shape, 3)}choose {way_out}"
            )
        extractor = (*self._convolutions(shape[0]), Flatten("flatten"))
        (features,) = through(extractor, shape)
        return LayerTable(
            input_shape=shape,
            extractor=extractor,
            classifier=self._head(features, outputs),
            initialisation=self.initialisation,
        )

    def _convolutions(self, in_channels: int) -> list[Layer]:
        how = self.normalisation
        layers: list[Layer] = []
        number = 0
        for stage, (channels, convolutions) in enumerate(zip(CHANNELS, CONVOLUTIONS[self.depth], strict=True), start=1):
            for _ in range(convolutions):
                number += 1
                layers.append(Conv2d(f"conv{number}", in_channels, channels, kernel=3, padding=1))
                layers += [*normalising(how, 2, channels, number), ReLU(f"relu{number}")]
                in_channels = channels
            layers.append(MaxPool2d(f"pool{stage}", kernel=2))
        return layers

    def _head(self, features: int, outputs: int) -> tuple[Layer, ...]:
        units = UNITS[self.head]
        return (
            Linear("fc1", inputs=features, outputs=units),
            ReLU("fc_relu1"),
            Dropout("dropout1", self.dropout),
            Linear("fc2", inputs=units, outputs=units),
            ReLU("fc_relu2"),
            Dropout("dropout2", self.dropout),
            Linear("fc3", inputs=units, outputs=outputs),
        )
