"""The residual networks for CIFAR-10 (He et al., CVPR 2016, section 4.2): 6n + 2 layers, n blocks in each of 3 stages.

Convolutions have no bias where normalisation follows, as its offset is one, and have one with ``normalisation: none``.
Weights start as the paper says, by He's normal scheme. Leaves out: pre-activation, bottlenecks, the ImageNet variants,
and a start for residual networks without normalisation, whose values grow with each block: train these at small
learning rates.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.errors import UserError
from fedsim.models.layers import (
    Conv2d,
    GlobalAveragePool,
    Layer,
    Linear,
    Normalisation,
    PadShortcut,
    ReLU,
    Residual,
    Shape,
    normalising,
)
from fedsim.models.settings import PublishedModelSettings, channel_axis
from fedsim.models.table import Initialisation, LayerTable

__all__ = ["ResNet"]

CHANNELS = (16, 32, 64)  # of the three stages; the second and the third begin with a stride of 2
LEAST_PIXELS = 8  # halved twice, and normalised even when a batch has one sample


class ResNet(PublishedModelSettings):
    """ResNet-20, 32, 44 or 56 for images of 8x8 pixels or more, with padded or projected shortcuts."""

    PAPER_SHAPE: ClassVar[Shape] = (3, 32, 32)
    PAPER_CLASSES: ClassVar[int] = 10

    name: Literal["resnet"] = "resnet"
    depth: Literal[20, 32, 44, 56] = 20
    """Convolutions that are not in a shortcut, and the fully connected layer."""
    shortcut: Literal["pad", "projection"] = "pad"
    """Where channels double, a shortcut has zeros for the new ones (pad, as He et al. on CIFAR-10, and SPATL) or a 1x1
    convolution with normalisation (projection, as FlexiFed)."""
    normalisation: Normalisation = "batch"
    """What is behind each convolution: batch (batch normalisation, as in the paper), group (group normalisation of two
    groups; for clients of few classes) or none, with which convolutions have biases."""
    initialisation: Initialisation = "kaiming_normal"
    """How weights start: kaiming_normal (He's, as in the paper) and xavier_uniform (Glorot's), both with zero biases,
    or torch_default (PyTorch's own). Never compare runs that start differently."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """All but the fully connected layer is the extractor.

        Images are (channels, height, width), CIFAR-10's when the data set declares sizes only. Raises `UserError` when
        they are smaller than 8 x 8 pixels, or when there are more classes than outputs.

        >>> ResNet(depth=20).table((3, 32, 32), 10).parameters()
        269722
        >>> ResNet(depth=56, shortcut="projection").table(None, None).parameters()
        855770
        """
        shape, outputs = self.published_data(sample_shape, classes)
        if len(shape) != 3 or min(shape[1:]) < LEAST_PIXELS:
            raise UserError(
                f"model 'resnet' needs images (channels, height, width) of at least {LEAST_PIXELS} x {LEAST_PIXELS} "
                f"pixels, the data set has samples of shape {shape}; {channel_axis(shape, 3)}choose softmax or mlp, "
                "which take any shape"
            )
        layers: list[Layer] = [*self._convolution(1, shape[0], CHANNELS[0]), ReLU("relu1")]
        in_channels, number = CHANNELS[0], 0
        for channels in CHANNELS:
            for _ in range((self.depth - 2) // 6):
                number += 1
                layers += [self._block(f"block{number}", in_channels, channels), ReLU(f"relu{number + 1}")]
                in_channels = channels
        return LayerTable(
            input_shape=shape,
            extractor=(*layers, GlobalAveragePool("pool")),
            classifier=(Linear("fc", inputs=in_channels, outputs=outputs),),
            initialisation=self.initialisation,
        )

    def _block(self, name: str, in_channels: int, channels: int) -> Residual:
        stride = 1 if channels == in_channels else 2
        first = self._convolution(1, in_channels, channels, stride=stride)
        body = (*first, ReLU("relu1"), *self._convolution(2, channels, channels))
        return Residual(name, body, shortcut=() if stride == 1 else self._shortcut(in_channels, channels))

    def _shortcut(self, in_channels: int, channels: int) -> tuple[Layer, ...]:
        if self.shortcut == "pad":
            return (PadShortcut("pad", in_channels, channels, stride=2),)
        convolution = Conv2d("conv", in_channels, channels, kernel=1, stride=2, bias=self._biased)
        return (convolution, *normalising(self.normalisation, 2, channels))

    def _convolution(self, number: int, in_channels: int, channels: int, *, stride: int = 1) -> tuple[Layer, ...]:
        name = f"conv{number}"
        convolution = Conv2d(name, in_channels, channels, kernel=3, stride=stride, padding=1, bias=self._biased)
        return (convolution, *normalising(self.normalisation, 2, channels, number))

    @property
    def _biased(self) -> bool:
        return self.normalisation == "none"
