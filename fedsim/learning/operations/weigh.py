"""A mean whose weights come from the models themselves (IDA: Yeganeh et al., DCL workshop at MICCAI 2020)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fedsim.learning.operations.operation import Inputs, Operation, Value

__all__ = ["Weigh"]


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
        told = [float(number) for one in inputs.each("accuracy") for number in one.values()]
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
        total = sum(counts) or math.nan  # all are infinitely far away: the run has diverged
        return [count / total for count in counts]

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
