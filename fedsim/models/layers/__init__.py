"""A layer is known by its shapes: they fix its parameters, its work and which inputs it takes.

Shapes are one sample's, without the batch axis; images are channel-first ``(channels, height, width)``, series
``(channels, length)``, and sequences of tokens ``(length,)``. The arithmetic of output sizes is that of Dumoulin and
Visin, "A guide to convolution arithmetic for deep learning" (2016).

Leaves out: rectangular kernels, dilation, groups, padding while pooling images, attention.
"""

from __future__ import annotations

from fedsim.models.layers.composite import Block, PadShortcut, Residual, through
from fedsim.models.layers.convolution import Conv1d, Conv2d
from fedsim.models.layers.dense import Dropout, Flatten, Linear, ReLU
from fedsim.models.layers.fusion import Fusion, Operator
from fedsim.models.layers.gated import Gated
from fedsim.models.layers.layer import Layer, Shape
from fedsim.models.layers.normalisation import (
    BatchNorm1d,
    BatchNorm2d,
    ChannelNorm,
    GroupNorm1d,
    GroupNorm2d,
    Normalisation,
    normalising,
)
from fedsim.models.layers.pooling import GlobalAveragePool, KMaxPool, MaxPool1d, MaxPool2d
from fedsim.models.layers.recurrent import Gru, LastStep, Lstm, Recurrent
from fedsim.models.layers.tokens import Embedding, OneHot

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "Block",
    "ChannelNorm",
    "Conv1d",
    "Conv2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "Fusion",
    "Gated",
    "GlobalAveragePool",
    "GroupNorm1d",
    "GroupNorm2d",
    "Gru",
    "KMaxPool",
    "LastStep",
    "Layer",
    "Linear",
    "Lstm",
    "MaxPool1d",
    "MaxPool2d",
    "Normalisation",
    "OneHot",
    "Operator",
    "PadShortcut",
    "ReLU",
    "Recurrent",
    "Residual",
    "Shape",
    "normalising",
    "through",
]
