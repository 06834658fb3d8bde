"""The CNN of FedGS and FedGSP: LEAF's CNN for FEMNIST, whose 6.3 Mi parameters are the papers' "6.3 M"."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.models.extractors import convolutional_extractor
from fedsim.models.layers import Linear, Shape
from fedsim.models.settings import LayerModelSettings, Width
from fedsim.models.table import LayerTable

__all__ = ["FedgsCnn"]


class FedgsCnn(LayerModelSettings):
    """The CNN of FedGS and FedGSP for 28x28 grey images, 6,603,710 parameters: the classifier is the layer 2048-62."""

    INPUT_SHAPE: ClassVar[Shape] = (1, 28, 28)
    HIDDEN: ClassVar[int] = 2048

    name: Literal["fedgs_cnn"] = "fedgs_cnn"
    classes: Width = 62
    """Outputs of the classifier: 10 digits and 52 letters in the papers; the data set may have fewer classes."""

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """The four layers, whatever the data set.

        Raises `UserError` when the data set's samples are not of shape (1, 28, 28), or when it has more classes than
        the model has outputs.

        >>> table = FedgsCnn().table(None, None)
        >>> table.parameters(), table.forward_macs()
        (6603710, 17211904)
        """
        self.check_data(sample_shape, classes, needed=self.INPUT_SHAPE, outputs=self.classes)
        return LayerTable(
            input_shape=self.INPUT_SHAPE,
            extractor=convolutional_extractor(self.INPUT_SHAPE, channels=(32, 64), hidden=self.HIDDEN),
            classifier=(Linear("fc2", inputs=self.HIDDEN, outputs=self.classes),),
            initialisation=self.initialisation,
        )
