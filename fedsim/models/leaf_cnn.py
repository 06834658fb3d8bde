"""The two-layer CNN of SPATL for FEMNIST (Yu et al., SC 2022): LeNet-5 (LeCun et al., 1998), with rectifiers."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.models.layers import Conv2d, Flatten, Linear, MaxPool2d, ReLU, Shape
from fedsim.models.settings import LayerModelSettings, Width
from fedsim.models.table import LayerTable

__all__ = ["LeafCnn"]


class LeafCnn(LayerModelSettings):
    """SPATL's CNN for 28x28 grey images, 48,846 parameters: two convolutions extract, three full layers classify."""

    INPUT_SHAPE: ClassVar[Shape] = (1, 28, 28)

    name: Literal["leaf_cnn"] = "leaf_cnn"
    classes: Width = 62
    """Outputs of the classifier: 10 digits and 52 letters in the paper; the data set may have fewer classes."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The five layers, whatever the data set.

        Raises `UserError` when the data set's samples are not of shape (1, 28, 28), or when it has more classes than
        the model has outputs.

        >>> table = LeafCnn().table(None, None)
        >>> table.parameters(), table.parameters("extractor")  # the latter 156 + 2,416
        (48846, 2572)
        """
        self.check_data(sample_shape, classes, needed=self.INPUT_SHAPE, outputs=self.classes)
        return LayerTable(
            input_shape=self.INPUT_SHAPE,
            extractor=(
                Conv2d("conv1", in_channels=1, out_channels=6, kernel=5),
                ReLU("relu1"),
                MaxPool2d("pool1", kernel=2),
                Conv2d("conv2", in_channels=6, out_channels=16, kernel=5),
                ReLU("relu2"),
                MaxPool2d("pool2", kernel=2),
                Flatten("flatten"),
            ),
            classifier=(
                Linear("fc1", inputs=256, outputs=120),
                ReLU("relu3"),
                Linear("fc2", inputs=120, outputs=84),
                ReLU("relu4"),
                Linear("fc3", inputs=84, outputs=self.classes),
            ),
            initialisation=self.initialisation,
        )
