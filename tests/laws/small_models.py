"""Small models of the kinds of layers that published ones have: residual blocks, and series with pooling."""

from __future__ import annotations

from fedsim.models.layers import (
    Conv1d,
    Conv2d,
    Flatten,
    GlobalAveragePool,
    Layer,
    Linear,
    MaxPool1d,
    Normalisation,
    PadShortcut,
    ReLU,
    Residual,
    normalising,
)
from fedsim.models.table import LayerTable


def residual(how: Normalisation, classes: int) -> LayerTable:
    """Two blocks of a residual network for grey images of 8 x 8 pixels; the second one has more channels."""

    def convolution(number: int, channels: int, outputs: int, stride: int = 1) -> tuple[Layer, ...]:
        layer = Conv2d(f"conv{number}", channels, outputs, kernel=3, stride=stride, padding=1, bias=how == "none")
        return (layer, *normalising(how, 2, outputs, number))

    def block(name: str, channels: int, outputs: int, shortcut: tuple[Layer, ...] = ()) -> Residual:
        first = convolution(1, channels, outputs, stride=outputs // channels)
        return Residual(name, (*first, ReLU("relu1"), *convolution(2, outputs, outputs)), shortcut)

    return LayerTable(
        input_shape=(1, 8, 8),
        extractor=(
            *(*convolution(1, 1, 16), ReLU("relu1")),
            *(block("block1", 16, 16), ReLU("relu2")),
            *(block("block2", 16, 32, (PadShortcut("pad", 16, 32, stride=2),)), ReLU("relu3")),
            GlobalAveragePool("pool"),
        ),
        classifier=(Linear("fc", 32, classes),),
    )


def series(how: Normalisation, classes: int) -> LayerTable:
    """Two convolutions of series of two channels and 21 steps, with pooling of an even and of an odd length."""
    return LayerTable(
        input_shape=(2, 21),
        extractor=(
            *(Conv1d("conv1", 2, 16, kernel=4), *normalising(how, 1, 16, 1), ReLU("relu1")),
            MaxPool1d("pool1", kernel=2, stride=2),
            *(Conv1d("conv2", 16, 32, kernel=3), *normalising(how, 1, 32, 2), ReLU("relu2")),
            MaxPool1d("pool2", kernel=2, stride=2),
            Flatten("flatten"),
        ),
        classifier=(Linear("fc", 96, classes),),
    )
