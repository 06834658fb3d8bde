"""The character-level CNN of Zhang, Zhao and LeCun (NIPS 2015, Tables 1 and 2, small features), in FlexiFed's depths.

It has *depth* convolutions of 256 channels: two of kernel 7 and then of kernel 3; the first two and the last are pooled
by 3. With 6 it is the paper's own; FlexiFed (Wang et al., WWW 2023) leaves out some of those that are not pooled.
Weights start by Glorot's scheme, where the paper has normal ones of deviation 0.05. Leaves out: the thesaurus that the
paper augments its data with.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.errors import UserError
from fedsim.models.layers import (
    Block,
    Conv1d,
    Dropout,
    Flatten,
    Layer,
    Linear,
    MaxPool1d,
    Normalisation,
    OneHot,
    ReLU,
    Shape,
    normalising,
    through,
)
from fedsim.models.settings import PublishedModelSettings
from fedsim.models.table import LayerTable
from fedsim.settings import Probability

__all__ = ["CharCnn"]

CHARACTERS = 70
CHANNELS = 256
UNITS = 1024
POOL = 3


class CharCnn(PublishedModelSettings):
    """Character-level CNN of Zhang, Zhao and LeCun with 3 to 6 convolutions, for texts of 1014 characters."""

    PAPER_SHAPE: ClassVar[Shape] = (1014,)
    PAPER_CLASSES: ClassVar[int] = 4
    vocabulary: ClassVar[int | None] = CHARACTERS + 1

    name: Literal["char_cnn"] = "char_cnn"
    depth: Literal[3, 4, 5, 6] = 6
    """Convolutions; three fully connected layers follow them."""
    normalisation: Normalisation = "none"
    """What is behind each convolution: none (as in the paper), batch (batch normalisation) or group (group
    normalisation of two groups; for clients of few classes)."""
    dropout: Probability = 0.5
    """Chance of each hidden unit of the fully connected layers to be left out of a training step."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The convolutions are the extractor, the three fully connected layers the classifier.

        Samples are (length,) numbers of characters, 1 to 70 and 0 for all others, or (70, length) with a one where the
        character is; 1014 characters and the 4 classes of AG's News when the data set declares sizes only. As in the
        paper's tables, a convolution and its pooling are one layer. Raises `UserError` when the samples are of another
        shape or too short, or when there are more classes than outputs.

        >>> table = CharCnn(depth=6).table((1014,), 4)
        >>> table.parameters(), table.activation_shapes["flatten"]  # 34 x 256 features, as in the paper
        (11339780, (8704,))
        """
        shape, outputs = self.published_data(sample_shape, classes)
        takes_ids = len(shape) == 1
        if shape[:-1] not in ((), (CHARACTERS,)) or shape[-1] < self._least_length:
            raise UserError(
                f"model 'char_cnn' of depth {self.depth} needs samples (length,) of character numbers or "
                f"({CHARACTERS}, length) of zeros and ones, of a length of at least {self._least_length}, the data set "
                f"has samples of shape {shape}; choose a data set of texts, longer texts, or another model"
            )
        one_hot = (OneHot("one_hot", CHARACTERS),) if takes_ids else ()
        extractor = (*one_hot, *self._convolutions(), Flatten("flatten"))
        (features,) = through(extractor, shape)
        return LayerTable(
            input_shape=shape,
            extractor=extractor,
            classifier=(
                Linear("fc1", inputs=features, outputs=UNITS),
                ReLU("relu1"),
                Dropout("dropout1", self.dropout),
                Linear("fc2", inputs=UNITS, outputs=UNITS),
                ReLU("relu2"),
                Dropout("dropout2", self.dropout),
                Linear("fc3", inputs=UNITS, outputs=outputs),
            ),
            initialisation=self.initialisation,
            takes_ids=takes_ids,
        )

    @property
    def _least_length(self) -> int:
        """Backwards from one value after the last pooling; a convolution takes 2 or 6 values from the length."""
        before_kernels_of_3 = POOL + 2 * (self.depth - 2)
        return POOL * (POOL * before_kernels_of_3 + 6) + 6

    def _convolutions(self) -> list[Layer]:
        blocks: list[Layer] = []
        in_channels = CHARACTERS
        for number in range(1, self.depth + 1):
            kernel = 7 if number <= 2 else 3
            pool = (MaxPool1d("pool", kernel=POOL, stride=POOL),) if number in (1, 2, self.depth) else ()
            convolution = Conv1d("conv", in_channels, CHANNELS, kernel=kernel)
            layers = (convolution, *normalising(self.normalisation, 1, CHANNELS), ReLU("relu"), *pool)
            blocks.append(Block(f"conv{number}", layers))
            in_channels = CHANNELS
        return blocks
