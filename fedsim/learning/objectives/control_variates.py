"""SCAFFOLD's clients (Karimireddy et al., *SCAFFOLD: stochastic controlled averaging for federated learning*, ICML
2020, algorithm 1, lines 7 to 14, option II).

With momentum, the correction goes through the momentum buffer, as a gradient does, and the change of the weights is
divided by the weight that gradients have in it. A plain division by the number of steps would let c grow without bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from fedsim.learning.objectives.objective import Given, Objective, Tensors
from fedsim.models.table import BYTES_PER_PARAMETER, ModelTable

__all__ = ["CONTROL", "CONTROL_CHANGE", "ControlVariates"]

CONTROL = "control"
"""c: what the server expects of a gradient, and sends beside its model."""
CONTROL_CHANGE = "control_change"
"""``c_i+ - c_i``: what a client sends beside its own."""
OWN = "own_control"
"""c_i: what a client expects of its gradient."""


class ControlVariates(Objective):
    """Control variates (SCAFFOLD): a client's gradients are corrected by what all clients' and its own ones were."""

    name: Literal["control_variates"] = "control_variates"
    receives: ClassVar[tuple[str, ...]] = (CONTROL,)
    remembers: ClassVar[tuple[str, ...]] = (OWN,)
    sends: ClassVar[tuple[str, ...]] = (CONTROL_CHANGE,)
    reads_start: ClassVar[bool] = True
    pushes: ClassVar[bool] = True

    @property
    def pull(self) -> float:
        """None at all."""
        return 0.0

    def bytes_of(self, name: str, table: ModelTable) -> float:
        """4 for each trained parameter: running statistics have no control."""
        return float(BYTES_PER_PARAMETER * table.parameters())

    def kept_bytes(self, table: ModelTable) -> float:
        """Its control variate."""
        return self.bytes_of(OWN, table)

    def push(self, given: Given) -> Tensors:
        """``c - c_i``; c_i is zero before the first training."""
        control, own = given.models[CONTROL], given.state.get(OWN)
        return {name: control[name] if own is None else control[name] - own[name] for name in given.start}

    def add_gradient(self, gradients: Tensors, weights: Tensors, given: Given) -> None:
        """Adds `push`."""
        control, own = given.models[CONTROL], given.state.get(OWN)
        for name, gradient in gradients.items():
            gradient.add_(control[name])
            if own is not None:
                gradient.sub_(own[name])

    def weight_of_gradients(self, given: Given) -> float:
        """a_i: how far steps of gradient 1 take a weight, in learning rates."""
        return given.training.gradient_weight(given.steps)

    def remember(self, weights: Tensors, given: Given) -> Mapping[str, Tensors]:
        """``c_i+ = c_i - c + (w - y) / (a_i eta)``, and what that is more than ``c_i``."""
        way = self.weight_of_gradients(given) * given.training.learning_rate
        control, own = given.models[CONTROL], given.state.get(OWN)
        change = {name: (start - weights[name]).div_(way).sub_(control[name]) for name, start in given.start.items()}
        kept = {name: tensor + own[name] if own is not None else tensor.clone() for name, tensor in change.items()}
        return {OWN: kept, CONTROL_CHANGE: change}
