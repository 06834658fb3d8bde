"""SCAFFOLD's server (Karimireddy et al., *SCAFFOLD: stochastic controlled averaging for federated learning*, ICML 2020,
algorithm 1, lines 16 and 17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fedsim.learning.learner import Learner
from fedsim.learning.objectives.control_variates import CONTROL, CONTROL_CHANGE
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.operation import Inputs, Operation, Value
from fedsim.learning.rules.changes import weighted_change
from fedsim.learning.rules.optimiser import Moments, Optimiser
from fedsim.learning.rules.rule import Aggregation, State
from fedsim.learning.rules.update import Update
from fedsim.models.table import BYTES_PER_PARAMETER, ModelTable
from fedsim.settings import Positive

__all__ = ["ControlledMean"]


class ControlledMean(Optimiser):
    """SCAFFOLD's server: the mean of the updates, and a control variate that follows those of all clients."""

    name: Literal["scaffold"] = "scaffold"
    provides: ClassVar[tuple[str, ...]] = (CONTROL,)
    learning_rate: Positive = 1.0
    """eta_g: the server's step size; 1, as in the paper's experiments, takes the mean."""

    @property
    def needs(self) -> tuple[str, ...]:
        """``c_i+ - c_i`` of each update."""
        return (CONTROL_CHANGE,)

    @property
    def moments(self) -> tuple[str, ...]:
        """None of the model."""
        return ()

    def moved(self, change: Any, before: Moments) -> dict[str, Any]:
        """Nothing."""
        return {}

    def step(self, change: Any, moments: Moments) -> Any:
        """``eta_g D``."""
        return self.learning_rate * change

    def kept_bytes(self, table: ModelTable) -> float:
        """c, of what is trained."""
        return float(BYTES_PER_PARAMETER * table.parameters())

    def held_bytes(self, table: ModelTable) -> float:
        """The change of a client's control."""
        return self.kept_bytes(table)

    def begin(self, learner: Learner, state: State, table: ModelTable) -> State:
        """c is zero."""
        model = state["model"]
        statistics = tuple(f"{part}.{name}" for part in model for name in table.statistics_names(part))
        outputs = {part: f"{CONTROL}.{part}" for part in model}
        made = learner.apply(Zeros(statistics), {"like": model}, outputs.values(), round_number=0)
        return {**state, CONTROL: {part: made[output] for part, output in outputs.items()}}

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        """A step of the model, and ``c = c + (1 / N) sum of (c_i+ - c_i)``, N clients in all."""
        state, control = super().apply(learner, state, updates, at), state[CONTROL]
        shares = [1 / at.clients] * len(updates)
        about: dict[str, Any] = {"round_number": at.round_number}
        change = weighted_change(learner, {}, updates, name=CONTROL_CHANGE, weights=shares, **about)
        given = {"base": control, "change": change}
        return {**state, CONTROL: learner.apply(Add(), given, control, soon=True, **about)}


@dataclass(frozen=True)
class Zeros(Operation):
    """Zeros for all that is trained of a model, which is the input "like"; outputs ``control.PART``."""

    name: ClassVar[str] = "zeros"
    without: tuple[str, ...]
    """``part.name`` of running statistics."""

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """Zeros."""
        return {
            f"{CONTROL}.{part}": {
                name: tensor.new_zeros(tensor.shape)
                for name, tensor in tensors.items()
                if f"{part}.{name}" not in self.without
            }
            for part, tensors in inputs.model("like").items()
        }
