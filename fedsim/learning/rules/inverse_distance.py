"""IDA: inverse distance aggregation (Yeganeh et al., *Inverse distance aggregation for federated learning with
non-IID data*, DCL workshop at MICCAI 2020).

A model that lies far from the mean of all is taken for an outlier, and counts less. All models of a round stay in
memory until the mean is known.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fedsim.learning.learner import Learner
from fedsim.learning.objectives.accuracy import ACCURACY
from fedsim.learning.operations.operation import Inputs, Operation, Value
from fedsim.learning.rules.changes import base_of, weighted_change
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update
from fedsim.models.table import ModelTable
from fedsim.settings import Fraction, NonNegative

__all__ = ["InverseDistance"]


class InverseDistance(ServerRule):
    """Inverse distance (IDA): an update counts the less, the further its model lies from the mean of all of them."""

    name: Literal["inverse_distance"] = "inverse_distance"
    version: ClassVar[int] = 1
    """Belongs to the numbers that it makes."""
    norm: Literal["l1", "l2"] = "l1"
    """Of the distance: the sum of absolute differences, or the Euclidean one."""
    epsilon: NonNegative = 1e-8
    """Added to each distance. With 0, models that are the mean itself are all that counts."""
    accuracy: bool = False
    """INTRAC: an update also counts the less, the more of its own training samples its model has told right."""
    least_accuracy: Fraction | None = None
    """The least that counts of that; null: that of guessing, one over the number of classes."""

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


@dataclass(frozen=True)
class Weigh(Operation):
    """The mean with weights from values.

    Inputs: the "base", the "mean" change, each "model", and each "accuracy" where it is told. Outputs: the parts.
    """

    name: ClassVar[str] = "inverse_distance"
    weights: tuple[float, ...]
    """Of the updates, beside their distances."""
    norm: Literal["l1", "l2"]
    epsilon: float
    least_accuracy: float
    averaged: tuple[str, ...]
    """``part.name`` of running statistics, which make no distance."""

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """The next model."""
        base, mean, models = inputs.model("base"), inputs.model("mean"), inputs.models("model")
        distances = [self._distance(base, mean, model) for model in models]
        told = [float(one[ACCURACY]) for one in inputs.each(ACCURACY)]
        made = {part: {name: tensor.clone() for name, tensor in tensors.items()} for part, tensors in base.items()}
        for share, model in zip(self._shares(distances, told), models, strict=True):
            for part, tensors in made.items():
                for name, tensor in tensors.items():
                    tensor.add_(model[part][name] - base[part][name], alpha=share)
        return made

    def _shares(self, distances: Sequence[float], told: Sequence[float]) -> list[float]:
        apart = [distance + self.epsilon for distance in distances]
        inverse = [1 / one for one in apart] if all(apart) else [float(not one) for one in apart]  # at the mean itself
        accuracies = [max(self.least_accuracy, one) for one in told] or [1.0] * len(inverse)
        counts = [
            weight * one / accuracy for weight, one, accuracy in zip(self.weights, inverse, accuracies, strict=True)
        ]
        return [count / sum(counts) for count in counts]

    def _distance(self, base: Mapping[str, Any], mean: Mapping[str, Any], model: Mapping[str, Any]) -> float:
        apart = [
            (model[part][name] - (tensor + mean[part][name])).double()
            for part, tensors in base.items()
            for name, tensor in tensors.items()
            if f"{part}.{name}" not in self.averaged
        ]
        if self.norm == "l1":
            return sum(float(one.abs().sum()) for one in apart)
        return math.sqrt(sum(float(one.square().sum()) for one in apart))
