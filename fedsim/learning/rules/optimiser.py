"""A server rule that takes the mean change of the updates for a gradient, and steps along it (FedOpt: Reddi et al.,
*Adaptive federated optimization*, ICLR 2021, algorithm 1).

Trained parameters are stepped, running statistics averaged. Of a round that exchanges some parts of the model, those
parts take the step; what the rule remembers, it remembers by part.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedsim.learning.learner import Learner, Model
from fedsim.learning.operations.operation import Inputs, Operation, Value
from fedsim.learning.rules.changes import base_of, weighted_change
from fedsim.learning.rules.rule import Aggregation, ServerRule, State
from fedsim.learning.rules.update import Update
from fedsim.models.table import BYTES_PER_PARAMETER, ModelTable
from fedsim.settings import Positive

__all__ = ["Moments", "Optimiser"]

Moments = Mapping[str, Any]
"""What is remembered of one tensor, by name; empty in its first step."""


class Optimiser(ServerRule):
    """One step for each tensor, by what `moved` remembers of its changes."""

    version: ClassVar[int] = 1
    """Belongs to the numbers that it makes."""

    learning_rate: Positive = 1.0
    """eta: the server's step size."""

    @property
    @abstractmethod
    def moments(self) -> tuple[str, ...]:
        """Names of what it remembers of each tensor; not "model", "base" or "change"."""

    @abstractmethod
    def moved(self, change: Any, before: Moments) -> dict[str, Any]:
        """The moments after a mean *change*, in new memory."""

    @abstractmethod
    def step(self, change: Any, moments: Moments) -> Any:
        """What is added to the tensor."""

    def kept_bytes(self, table: ModelTable) -> float:
        """Its moments, of what is trained."""
        return float(BYTES_PER_PARAMETER * table.parameters() * len(self.moments))

    def change(self, learner: Learner, base: Model, updates: Sequence[Update], at: Aggregation) -> Model:
        """What the step is made from: as a rule, the mean change."""
        return weighted_change(learner, base, updates, round_number=at.round_number)

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        """A step from the `change` of the round's parts."""
        base = base_of(state, updates)
        change = self.change(learner, base, updates, at)
        remembered = {name: state.get(name, {}) for name in self.moments}
        before = {name: {part: kept[part] for part in base if part in kept} for name, kept in remembered.items()}
        outputs = {name: {part: f"{name}.{part}" for part in base} for name in self.moments}
        made = learner.apply(
            Step(self, at.statistics(base)),
            {"base": base, "change": change, **before},
            [*base, *(output for some in outputs.values() for output in some.values())],
            round_number=at.round_number,
        )
        after = {
            name: {**remembered[name], **{part: made[output] for part, output in some.items()}}
            for name, some in outputs.items()
        }
        return {**state, **after, "model": {**state["model"], **{part: made[part] for part in base}}}


@dataclass(frozen=True)
class Step(Operation):
    """A step of an optimiser, tensor by tensor.

    Inputs: the "base", its mean "change", and each of the rule's moments, by name. Outputs: the parts of the base, and
    ``MOMENT.PART``.
    """

    name: ClassVar[str] = "server_step"
    rule: Optimiser
    averaged: tuple[str, ...]
    """``part.name`` of what is averaged, not stepped: running statistics."""

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """The next model, and what is remembered of it."""
        base, changes, names = inputs.model("base"), inputs.model("change"), self.rule.moments
        before = {name: inputs.model(name) for name in names}
        made: dict[str, dict[str, Any]] = {part: {} for part in base}
        made |= {f"{name}.{part}": {} for name in names for part in base}
        for part, change in ((part, changes[part]) for part in base):
            for name, weight in base[part].items():
                if f"{part}.{name}" in self.averaged:
                    made[part][name] = weight + change[name]
                    continue
                kept = {moment: parts[part][name] for moment, parts in before.items() if part in parts}
                moments = self.rule.moved(change[name], kept)
                made[part][name] = weight + self.rule.step(change[name], moments)
                for moment, value in moments.items():
                    made[f"{moment}.{part}"][name] = value
        return made
