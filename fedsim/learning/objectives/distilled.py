"""Distillation from the round's global model, as the authors' public code of HFedMS has it; no paper does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from fedsim.data.dataset import FederatedDataset
from fedsim.errors import Misfit
from fedsim.learning.objectives.objective import Objective
from fedsim.settings import NonNegative

__all__ = ["Distilled"]


class Distilled(Objective):
    """``coefficient KL(softmax of the global model's scores || softmax of the local ones)``, mean over samples."""

    name: Literal["distilled"] = "distilled"
    receives: ClassVar[tuple[str, ...]] = ("global",)
    scores: ClassVar[tuple[str, ...]] = ("global",)
    coefficient: NonNegative
    """Strength of the term; 0.1 in the authors' code."""

    def check(self, dataset: FederatedDataset) -> None:
        """There must be classes."""
        if dataset.regression:
            raise Misfit(
                f"distillation compares scores of classes, and data set {dataset.name!r} has numbers to predict; "
                "choose another objective"
            )

    def loss(self, scores: Any, others: Mapping[str, Any]) -> Any:
        """Zero where both models agree, and never negative."""
        told, ours = others["global"].log_softmax(dim=1), scores.log_softmax(dim=1)
        return self.coefficient * (told.exp() * (told - ours)).sum(dim=1).mean()
