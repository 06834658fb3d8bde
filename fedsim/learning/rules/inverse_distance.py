"""IDA: inverse distance aggregation (Yeganeh et al., *Inverse distance aggregation for federated learning with
non-IID data*, DCL workshop at MICCAI 2020).

A model that lies far from the mean of all is taken for an outlier, and counts less. All models of a round stay in
memory until the mean is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from fedsim.errors import Misfit
from fedsim.learning.learner import Learner
from fedsim.learning.objectives.accuracy import ACCURACY
from fedsim.learning.operations.weigh import Weigh
from fedsim.learning.rules.changes import base_of, weighted_change
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update
from fedsim.models.table import ModelTable
from fedsim.settings import Fraction, NonNegative

__all__ = ["InverseDistance"]


class InverseDistance(ServerRule):
    """Inverse distance (IDA): an update counts the less, the further its model lies from the mean of all of them."""

    name: Literal["inverse_distance"] = "inverse_distance"
    by_tensor: ClassVar[bool] = False
    norm: Literal["l1", "l2"] = "l1"
    """Of the distance: the sum of absolute differences, or the Euclidean one."""
    epsilon: NonNegative = 1e-8
    """Added to each distance. With 0, models that are the mean itself are all that counts."""
    accuracy: bool = False
    """INTRAC: an update also counts the less, the more of its own training samples its model has told right."""
    least_accuracy: Fraction | None = None
    """The least that counts of that; null: that of guessing, one over the number of classes."""

    @model_validator(mode="after")
    def _counts(self) -> Self:
        if self.least_accuracy is not None and not self.accuracy:
            raise Misfit(f"{self.least_accuracy:g} counts with accuracy: true only", "least_accuracy")
        return self

    @property
    def needs(self) -> tuple[str, ...]:
        """The accuracy in training, with INTRAC."""
        return (ACCURACY,) if self.accuracy else ()

    def held_bytes(self, table: ModelTable) -> float:
        """Its model, until the mean is known."""
        return table.bytes()

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        """``base + sum of a_k (w_k - base)``, where ``a_k`` is normalised weight over distance."""
        updates = sorted(updates, key=lambda update: update.sender)
        base, equal = base_of(state, updates), [1 / len(updates)] * len(updates)
        mean = weighted_change(learner, base, updates, round_number=at.round_number, weights=equal)
        weights = tuple(update.weight for update in updates)
        least = self.least_accuracy if self.least_accuracy is not None else 1 / (at.classes or 1)
        made = learner.apply(
            Weigh(weights, self.norm, self.epsilon, least, at.statistics(base)),
            {
                "base": base,
                "mean": mean,
                "model": [update.model for update in updates],
                ACCURACY: [update.models[ACCURACY] for update in updates if self.accuracy],
            },
            base,
            round_number=at.round_number,
        )
        return {**state, "model": {**state["model"], **made}}
