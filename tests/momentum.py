"""Momentum on the server, as somebody else would write it: an operation of its own, and a state in handles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fedsim.learning.learner import Learner
from fedsim.learning.operations.operation import Inputs, Operation
from fedsim.learning.rules.changes import weighted_change
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update


@dataclass(frozen=True)
class Step(Operation):
    """``m <- beta m + change, w <- w + rate m`` (Hsu, Qi and Brown, arXiv:1909.06335, algorithm 1)."""

    name: ClassVar[str] = "momentum_step"
    beta: float
    rate: float

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        before, made = inputs.model("momentum"), {}
        for part, change in inputs.model("change").items():
            moved = {n: self.beta * before[part][n] + c if before else c for n, c in change.items()}
            made[f"momentum.{part}"] = moved
            made[part] = {n: w + self.rate * moved[n] for n, w in inputs.model("base")[part].items()}
        return made


class Momentum(ServerRule):
    """Momentum on the server."""

    name: Literal["heavy_ball"] = "heavy_ball"
    beta: float = 0.9

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        base = state["model"]
        change = weighted_change(learner, base, updates, round_number=at.round_number)
        given = {"base": base, "change": change, "momentum": state.get("momentum", {})}
        names = [*base, *(f"momentum.{part}" for part in base)]
        made = learner.apply(Step(self.beta, 1.0), given, names, round_number=at.round_number)
        momentum = {part: made[f"momentum.{part}"] for part in base}
        return {"model": {part: made[part] for part in base}, "momentum": momentum}
