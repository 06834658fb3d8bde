"""WDCNN: a CNN with a wide first kernel on raw vibration signals (Zhang et al., Sensors 17(2):425, 2017).

Five convolutions, normalised, rectified and pooled by 2, and a hidden layer of 100 units. The paper's signal has one
channel of 2048 values. The paper normalises over batches (``normalisation: batch``); here each sample is normalised by
itself, because a machine's sensor has samples of few classes, often of one (see `fedsim.models.layers.normalisation`).
Leaves out: the normalisation of the hidden layer, which a batch of one sample does not allow, and the paper's
adaptation of normalisation to new loads (AdaBN).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import Interval
from pydantic import model_validator

from fedsim.errors import Misfit, UserError
from fedsim.models.layers import (
    Conv1d,
    Flatten,
    Layer,
    Linear,
    MaxPool1d,
    Normalisation,
    ReLU,
    Shape,
    normalising,
    through,
)
from fedsim.models.settings import LayerModelSettings, channel_axis
from fedsim.models.table import LayerTable

__all__ = ["Conv1dModel"]

CHANNELS = (16, 32, 64, 64, 64)
UNITS = 100
LEAST_STEPS = 64  # after the first convolution: halved four times, less 2, and 2 are left to normalise

Steps = Annotated[int, Interval(ge=1, le=10_000)]


class Conv1dModel(LayerModelSettings):
    """WDCNN for series such as vibration: five 1-D convolutions, of which the first is wide, and a hidden layer."""

    name: Literal["conv1d"] = "conv1d"
    kernel: Steps = 64
    """Values that the first convolution sees at once."""
    stride: Steps = 16
    """Values from one window of the first convolution to the next; make it smaller for short series."""
    normalisation: Normalisation = "group"
    """What is behind each convolution: group (group normalisation of two groups; for clients of few classes), batch
    (batch normalisation, as in the paper) or none."""

    @model_validator(mode="after")
    def _no_value_is_skipped(self) -> Self:
        if self.stride > self.kernel:
            raise Misfit(f"stride={self.stride} must be at most kernel={self.kernel}, or values are skipped", "stride")
        return self

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """All but the last layer is the extractor.

        Samples are (channels, length). Raises `UserError` when the data set declares sizes only, when its samples are
        no series, or when they are shorter than 64 strides (roughly: 1024 values for a stride of 16).

        >>> table = Conv1dModel().table((1, 2048), 10)
        >>> table.parameters(), table.activation_shapes["flatten"]  # 3 x 64 features, as in the paper
        (54310, (192,))
        """
        shape, outputs = self.known_data(sample_shape, classes)
        padding = (self.kernel - self.stride) // 2
        least = self._least(self.stride)
        if len(shape) != 2 or shape[1] < least:
            raise UserError(
                f"model 'conv1d' with kernel={self.kernel} and stride={self.stride} needs series (channels, length) of "
                f"a length of at least {least}, the data set has samples of shape {shape}; {self._way_out(shape)}"
            )
        layers: list[Layer] = []
        for number, channels in enumerate(CHANNELS, start=1):
            in_channels = CHANNELS[number - 2] if number > 1 else shape[0]
            layers += [
                self._convolution(number, in_channels, channels, padding),
                *normalising(self.normalisation, 1, channels, number),
                ReLU(f"relu{number}"),
                MaxPool1d(f"pool{number}", kernel=2, stride=2),
            ]
        extractor = (*layers, Flatten("flatten"))
        (features,) = through(extractor, shape)
        return LayerTable(
            input_shape=shape,
            extractor=(*extractor, Linear("fc1", inputs=features, outputs=UNITS), ReLU("relu6")),
            classifier=(Linear("fc2", inputs=UNITS, outputs=outputs),),
            initialisation=self.initialisation,
        )

    def _least(self, stride: int) -> int:
        """The shortest series that a first convolution of *stride* leaves enough of."""
        return (LEAST_STEPS - 1) * stride + self.kernel - 2 * ((self.kernel - stride) // 2)

    def _way_out(self, shape: Shape) -> str:
        """What may help somebody whose samples have *shape*."""
        if (axis := channel_axis(shape, 2)) or len(shape) != 2:
            return f"{axis}choose softmax or mlp, which take any shape"
        for stride in range(self.stride - 1, 0, -1):
            if self._least(stride) <= shape[1]:
                return f"set model.stride to {stride}, or choose gru, which takes series of any length"
        return "choose gru, which takes series of any length"

    def _convolution(self, number: int, in_channels: int, channels: int, padding: int) -> Conv1d:
        if number == 1:
            return Conv1d("conv1", in_channels, channels, kernel=self.kernel, stride=self.stride, padding=padding)
        return Conv1d(f"conv{number}", in_channels, channels, kernel=3, padding=0 if number == len(CHANNELS) else 1)
