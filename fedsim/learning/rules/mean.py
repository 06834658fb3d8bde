"""The weighted mean (McMahan et al., *Communication-efficient learning of deep networks from decentralized data*,
AISTATS 2017, algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fedsim.learning.learner import Learner
from fedsim.learning.operations.add import Add
from fedsim.learning.rules.changes import weighted_change
from fedsim.learning.rules.rule import ServerRule, State
from fedsim.learning.rules.update import Update

__all__ = ["Mean"]


class Mean(ServerRule):
    """The weighted mean of the updates, running statistics included, is the next model."""

    name: Literal["mean"] = "mean"

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], *, round_number: int) -> State:
        """``base + sum of w_i (model_i - base)``, in the precision of models; other parts stay as they are."""
        base = {part: state["model"][part] for part in updates[0].model}
        change = weighted_change(learner, base, updates, round_number=round_number)
        mean = learner.apply(Add(), {"base": base, "change": change}, base, round_number=round_number)
        return {**state, "model": {**state["model"], **mean}}
