"""The very deep CNN for characters of Conneau et al. (EACL 2017), with shortcuts, as FlexiFed trains it.

Characters are looked up in a table of 16 dimensions; a convolution to 64 channels and blocks of two convolutions of
kernel 3 follow, each normalised. Between blocks of 64, 128, 256 and 512 channels the length is halved by pooling 3 with
stride 2. A block's shortcut is its input, or a normalised 1 x 1 convolution of it where channels double, and the second
rectifier comes after the sum. The 8 largest values of each channel go to three fully connected layers. Convolutions
before normalisation have biases, those of shortcuts have none: with FlexiFed's figures (14.35, 16.45, 16.82 and
19.95 M) nothing else agrees. With ``normalisation: none`` shortcuts have biases, too. Weights start by He's scheme, as
in the paper. Leaves out: halving by strides or k-max, and a start for such a network without normalisation.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.errors import UserError
from fedsim.models.layers import (
    Conv1d,
    Embedding,
    Flatten,
    KMaxPool,
    Layer,
    Linear,
    MaxPool1d,
    Normalisation,
    ReLU,
    Residual,
    Shape,
    normalising,
)
from fedsim.models.settings import PublishedModelSettings
from fedsim.models.table import Initialisation, LayerTable

__all__ = ["Vdcnn"]

CHARACTERS = 70
DIMENSION = 16
CHANNELS = (64, 128, 256, 512)
BLOCKS = {9: (1, 1, 1, 1), 17: (2, 2, 2, 2), 29: (5, 5, 2, 2), 49: (8, 8, 5, 3)}
KEPT = 8
UNITS = 2048
LEAST_LENGTH = 57  # halved three times and rounded up: 8


class Vdcnn(PublishedModelSettings):
    """Very deep character-level CNN of Conneau et al., 9 to 49 convolutions deep, for texts of 1024 characters."""

    PAPER_SHAPE: ClassVar[Shape] = (1024,)
    PAPER_CLASSES: ClassVar[int] = 4
    vocabulary: ClassVar[int | None] = CHARACTERS + 1

    name: Literal["vdcnn"] = "vdcnn"
    depth: Literal[9, 17, 29, 49] = 9
    """Convolutions that are not in a shortcut; three fully connected layers follow them."""
    normalisation: Normalisation = "batch"
    """What is behind each convolution of a block: batch (batch normalisation, as in the paper), group (group
    normalisation of two groups; for clients of few classes) or none."""
    initialisation: Initialisation = "kaiming_normal"
    """How weights start: kaiming_normal (He's, as in the paper) and xavier_uniform (Glorot's), both with zero biases,
    or torch_default (PyTorch's own). Never compare runs that start differently."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The look-up and the convolutions are the extractor, the three fully connected layers the classifier.

        Samples are (length,) numbers of characters, 1 to 70 and 0 for all others; 1024 of them and the 4 classes of
        AG's News when the data set declares sizes only. Raises `UserError` when the samples are of another shape or
        shorter than 57 characters, or when there are more classes than outputs.

        >>> table = Vdcnn(depth=9).table((1024,), 4)
        >>> table.parameters(), table.parameters("classifier")
        (14351924, 12595204)
        """
        shape, outputs = self.published_data(sample_shape, classes)
        if len(shape) != 1 or shape[0] < LEAST_LENGTH:
            raise UserError(
                f"model 'vdcnn' needs samples (length,) of character numbers, of a length of at least {LEAST_LENGTH}, "
                f"the data set has samples of shape {shape}; choose a data set of texts, longer texts, or another model"
            )
        return LayerTable(
            input_shape=shape,
            extractor=(
                Embedding("embedding", tokens=CHARACTERS, dimension=DIMENSION),
                Conv1d("conv1", DIMENSION, CHANNELS[0], kernel=3, padding=1),
                *self._blocks(),
                KMaxPool("pool4", k=KEPT),
                Flatten("flatten"),
            ),
            classifier=(
                Linear("fc1", inputs=KEPT * CHANNELS[-1], outputs=UNITS),
                ReLU("fc_relu1"),
                Linear("fc2", inputs=UNITS, outputs=UNITS),
                ReLU("fc_relu2"),
                Linear("fc3", inputs=UNITS, outputs=outputs),
            ),
            initialisation=self.initialisation,
            takes_ids=True,
        )

    def _blocks(self) -> list[Layer]:
        layers: list[Layer] = []
        in_channels, number = CHANNELS[0], 0
        for stage, (channels, blocks) in enumerate(zip(CHANNELS, BLOCKS[self.depth], strict=True)):
            if stage:
                layers.append(MaxPool1d(f"pool{stage}", kernel=3, stride=2, padding=1))
            for _ in range(blocks):
                number += 1
                layers += [self._block(f"block{number}", in_channels, channels), ReLU(f"relu{number}")]
                in_channels = channels
        return layers

    def _block(self, name: str, in_channels: int, channels: int) -> Residual:
        how = self.normalisation
        body = (
            Conv1d("conv1", in_channels, channels, kernel=3, padding=1),
            *normalising(how, 1, channels, 1),
            ReLU("relu1"),
            Conv1d("conv2", channels, channels, kernel=3, padding=1),
            *normalising(how, 1, channels, 2),
        )
        if channels == in_channels:
            return Residual(name, body)
        projection = Conv1d("conv", in_channels, channels, kernel=1, bias=how == "none")
        return Residual(name, body, shortcut=(projection, *normalising(how, 1, channels)))
