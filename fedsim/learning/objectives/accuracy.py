"""Local SGD by a client that also tells how well it has done (INTRAC: Yeganeh et al., DCL workshop at MICCAI 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from fedsim.data.dataset import FederatedDataset
from fedsim.errors import Misfit
from fedsim.learning.objectives.objective import Given, Objective, Tensors

__all__ = ["ACCURACY", "TellsAccuracy"]

ACCURACY = "accuracy"
"""The share of the training samples that a client has told right, which it tells the server."""


class TellsAccuracy(Objective):
    """Local SGD, and the share of its samples that the model has told right when it was trained on them is sent."""

    name: Literal["tells_accuracy"] = "tells_accuracy"
    tells: ClassVar[tuple[str, ...]] = (ACCURACY,)
    counts_right: ClassVar[bool] = True

    @property
    def pull(self) -> float:
        """None at all."""
        return 0.0

    def check(self, dataset: FederatedDataset) -> None:
        """There must be classes."""
        if dataset.regression:
            problem = f"accuracy is of classes, and data set {dataset.name!r} has numbers to predict"
            raise Misfit(f"{problem}; choose another objective or protocol")

    def remember(self, weights: Tensors, given: Given) -> Mapping[str, Tensors]:
        """The number that is sent."""
        return {ACCURACY: {ACCURACY: given.right.double() / given.seen}}
