"""The weighted mean (McMahan et al., *Communication-efficient learning of deep networks from decentralized data*,
AISTATS 2017, algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fedsim.learning.learner import Learner
from fedsim.learning.operations.add import Add
from fedsim.learning.rules.changes import base_of, weighted_change
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update

__all__ = ["Mean"]


class Mean(ServerRule):
    """The weighted mean of the updates, running statistics included, is the next model."""

    name: Literal["mean"] = "mean"

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        """``base + sum of w_i (model_i - base)``, in the precision of models; other parts stay as they are."""
        base = base_of(state, updates)
        change = weighted_change(learner, base, updates, round_number=at.round_number)
        mean = learner.apply(Add(), {"base": base, "change": change}, base, round_number=at.round_number)
        return {**state, "model": {**state["model"], **mean}}
