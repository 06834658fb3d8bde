"""FedFusion's server (Yao et al., *Towards faster and better federated learning: A feature fusion approach*, ICIP
2019): gates are averaged over rounds, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from fedsim.learning.learner import Learner
from fedsim.learning.operations.move_gates import MoveGates
from fedsim.learning.rules.changes import base_of, weighted_change
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update
from fedsim.models.fusion import GATES
from fedsim.settings import Fraction

__all__ = ["GateAverage"]


class GateAverage(ServerRule):
    """The weighted mean of the updates, but gates of a fusion layer move by a share of their way only."""

    name: Literal["gate_average"] = "gate_average"
    share: Fraction = 0.1
    """Gates become ``share`` times their mean and ``1 - share`` times what they were."""

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        """``base + sum of w_i (model_i - base)``, of gates the share of the sum; other parts stay as they are."""
        base = base_of(state, updates)
        change = weighted_change(learner, base, updates, round_number=at.round_number)
        move, given = MoveGates(GATES, self.share), {"base": base, "change": change}
        moved = learner.apply(move, given, base, round_number=at.round_number)
        return {**state, "model": {**state["model"], **moved}}
