"""Multinomial logistic regression: the smallest model that learns, and a convex one."""

from __future__ import annotations

from math import prod
from typing import Literal

from fedsim.models.layers import Flatten, Linear, Shape
from fedsim.models.settings import LayerModelSettings
from fedsim.models.table import LayerTable

__all__ = ["Softmax"]


class Softmax(LayerModelSettings):
    """One linear layer on the flattened sample; all of it is the classifier."""

    name: Literal["softmax"] = "softmax"

    def table(self, sample_shape: Shape | None, classes: int | None) -> LayerTable:
        """One linear layer from the data set's sample shape to its classes.

        Raises `UserError` when the data set declares sizes only.

        >>> Softmax().table((1, 8, 8), 10).parameters()  # 64 * 10 + 10
        650
        """
        shape, outputs = self.known_data(sample_shape, classes)
        return LayerTable(
            input_shape=shape,
            classifier=(Flatten("flatten"), Linear("fc", inputs=prod(shape), outputs=outputs)),
            initialisation=self.initialisation,
        )
