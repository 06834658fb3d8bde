"""The CNN of HFedMS (IEEE Trans. Cloud Computing, 2022), Table I: five layers, the last one alone is the classifier.

The paper's text counts two fully connected layers, its Table I lists three; the table's parameter counts are right.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.models.extractors import convolutional_extractor
from fedsim.models.layers import Linear, ReLU, Shape
from fedsim.models.settings import LayerModelSettings, Width
from fedsim.models.table import LayerTable

__all__ = ["HfedmsCnn"]


class HfedmsCnn(LayerModelSettings):
    """The CNN of HFedMS for 28x28 grey images, 6,687,834 parameters: extractor to 100 features, classifier 100-62."""

    INPUT_SHAPE: ClassVar[Shape] = (1, 28, 28)
    HIDDEN: ClassVar[int] = 2048
    FEATURES: ClassVar[int] = 100

    name: Literal["hfedms_cnn"] = "hfedms_cnn"
    classes: Width = 62
    """Outputs of the classifier: 10 digits and 52 letters in the paper; the data set may have fewer classes."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The five layers, whatever the data set.

        Raises `UserError` when the data set's samples are not of shape (1, 28, 28), or when it has more classes than
        the model has outputs.

        >>> table = HfedmsCnn().table(None, None)
        >>> table.parameters(), table.parameters("classifier")
        (6687834, 6262)
        """
        self.check_data(sample_shape, classes, needed=self.INPUT_SHAPE, outputs=self.classes)
        return LayerTable(
            input_shape=self.INPUT_SHAPE,
            extractor=(
                *convolutional_extractor(self.INPUT_SHAPE, channels=(32, 64), hidden=self.HIDDEN),
                Linear("fc2", inputs=self.HIDDEN, outputs=self.FEATURES),
                ReLU("relu4"),
            ),
            classifier=(Linear("fc3", inputs=self.FEATURES, outputs=self.classes),),
            initialisation=self.initialisation,
        )
