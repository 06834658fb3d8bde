"""FedNova: normalised averaging (Wang et al., *Tackling the objective inconsistency problem in heterogeneous federated
optimization*, NeurIPS 2020, section 4).

Clients that take more steps move further, and pull the mean to their own optimum. FedNova divides each change by the
weight ``a_i`` that gradients have in it, and multiplies the mean by the mean weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from fedsim.learning.learner import Learner
from fedsim.learning.operations.operation import Inputs, Operation, Value
from fedsim.learning.rules.changes import base_of, weighted_change
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update
from fedsim.models.table import BYTES_PER_PARAMETER, ModelTable

__all__ = ["NormalisedMean"]


class NormalisedMean(ServerRule):
    """Normalised averaging (FedNova): clients that take more steps of SGD count no more than others."""

    name: Literal["fednova"] = "fednova"
    accounting: Literal["sent", "paper"] = "sent"
    """``sent``: one number more in each update. ``paper``: twice the model in both directions, as SPATL's tables count
    it."""

    def bytes_beside(self, table: ModelTable, part: str | None = None) -> tuple[float, float]:
        """A client tells its ``a_i``; as papers count, all that is exchanged is sent twice."""
        return (0.0, float(BYTES_PER_PARAMETER)) if self.accounting == "sent" else (table.bytes(part),) * 2

    def held_bytes(self, table: ModelTable) -> float:
        """A model that has running statistics is summed up twice: once for these, in the weights of the mean."""
        return table.bytes() if table.statistics_bytes() else 0.0

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        """``w + (sum of p_i a_i) sum of p_i (w_i - w) / a_i``; who has taken no step has not moved."""
        if len({update.gradient_weight for update in updates}) == 1:  # then it is the mean, to the last bit
            return Mean().apply(learner, state, updates, at)
        total = sum(update.weight for update in updates)
        shares = [update.weight / total for update in updates]
        mean = sum(share * update.gradient_weight for share, update in zip(shares, updates, strict=True))
        weights = [
            share * mean / update.gradient_weight if update.gradient_weight else 0.0
            for share, update in zip(shares, updates, strict=True)
        ]
        base, averaged = base_of(state, updates), at.statistics(updates[0].model)
        given = {"base": base}
        given["change"] = weighted_change(learner, base, updates, round_number=at.round_number, weights=weights)
        if averaged:
            given["mean"] = weighted_change(learner, base, updates, round_number=at.round_number)
        made = learner.apply(Normalised(averaged), given, base, round_number=at.round_number)
        return {**state, "model": {**state["model"], **made}}


@dataclass(frozen=True)
class Normalised(Operation):
    """``base + change`` of what is trained, and ``base + mean`` of running statistics."""

    name: ClassVar[str] = "normalised"
    averaged: tuple[str, ...]
    """``part.name`` of running statistics."""

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """The next model."""
        change, mean = inputs.model("change"), inputs.model("mean")
        return {
            part: {
                name: value + (mean if f"{part}.{name}" in self.averaged else change)[part][name]
                for name, value in tensors.items()
            }
            for part, tensors in inputs.model("base").items()
        }
