"""SPATL's server (Yu et al., *SPATL: salient parameter aggregation and transfer learning for heterogeneous federated
learning*, SC 2022, section IV-C, Eqs. 11 and 12).

A client's update is decoded where it is made: what it has not sent is as it was sent to it. So Eq. 12 is a mean of such
updates. Its sign is mended: as printed, it moves away from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from fedsim.errors import Misfit
from fedsim.learning.learner import Learner, Model
from fedsim.learning.objectives.control_variates import CONTROL_CHANGE
from fedsim.learning.operations.operation import Inputs, Operation, Value
from fedsim.learning.operations.train import KEPT
from fedsim.learning.rules.optimiser import Optimiser
from fedsim.learning.rules.rule import Aggregation, State
from fedsim.learning.rules.scaffold import ControlledMean
from fedsim.learning.rules.update import Update
from fedsim.models.convolutions import skeleton_of
from fedsim.models.table import BYTES_PER_PARAMETER, EXTRACTOR, ModelTable

__all__ = ["SalientMean"]


class SalientMean(ControlledMean):
    """SPATL's server: the mean of the filters that were sent, and a control variate of the extractor."""

    name: Literal["salient_mean"] = "salient_mean"  # type: ignore[assignment]
    part: ClassVar[str | None] = EXTRACTOR
    denominator: Literal["clients", "count"] = "clients"
    """What the changes of a filter are divided by: the clients of the round (the paper: who has not sent a filter
    counts as no change), or those of them who have sent it."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Nothing: without gradient control there is none."""
        return ()

    @property
    def looks_at(self) -> tuple[str, ...]:
        """Which filters were kept."""
        return (KEPT,) if self.denominator == "count" else ()

    def check(self, table: ModelTable) -> None:
        """The model must have an extractor."""
        if EXTRACTOR not in table.parts:
            raise Misfit("'salient_mean' needs a model with an extractor; choose another, such as resnet or small_cnn")

    def kept_bytes(self, table: ModelTable) -> float:
        """c, of what is trained of the extractor."""
        return float(BYTES_PER_PARAMETER * table.parameters(EXTRACTOR))

    def begin(self, learner: Learner, state: State, table: ModelTable) -> State:
        """c is zero, of the extractor."""
        extractor = {part: handle for part, handle in state["model"].items() if part == EXTRACTOR}
        return {**super().begin(learner, {"model": extractor}, table), "model": state["model"]}

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], at: Aggregation) -> State:
        """A step of the model, and of c if clients send what theirs have changed by."""
        if CONTROL_CHANGE in updates[0].models:
            return super().apply(learner, state, updates, at)
        return Optimiser.apply(self, learner, state, updates, at)

    def change(self, learner: Learner, base: Model, updates: Sequence[Update], at: Aggregation) -> Model:
        """The mean change, of each filter over all clients or over those who have sent it."""
        change = super().change(learner, base, updates, at)
        if self.denominator == "clients" or KEPT not in updates[0].models:  # where nobody selects, all send all
            return change
        masks = [update.models[KEPT] for update in updates]
        weights = [update.weight for update in updates]
        states = tuple((one.name, tuple(name for name, _ in one.states)) for one in skeleton_of(at.table).convolutions)
        given: dict[str, Any] = {"change": change, "kept": masks}
        operation = PerUpload(tuple(weight / sum(weights) for weight in weights), states)
        return learner.apply(operation, given, change, round_number=at.round_number)


@dataclass(frozen=True)
class PerUpload(Operation):
    """The sum of weighted changes, divided for each filter by the weights of those who have sent it.

    Inputs: the "change", by part, and for each update what it has "kept". A filter that nobody has sent does not move.
    """

    name: ClassVar[str] = "masked_mean"
    weights: tuple[float, ...]
    """Of the updates; all together 1."""
    states: tuple[tuple[str, tuple[str, ...]], ...]
    """The tensors of the extractor that have a row for each filter, by the name of its convolution."""

    def apply(self, inputs: Inputs[Value], generator: np.random.Generator | None) -> Mapping[str, Value]:
        """The parts of the change."""
        kept = inputs.each("kept")
        made = {part: dict(tensors) for part, tensors in inputs.model("change").items()}
        extractor = made[EXTRACTOR]
        for convolution, names in self.states:
            sent = sum(weight * mask[convolution].double() for weight, mask in zip(self.weights, kept, strict=True))
            for name in names:
                share = sent.reshape(-1, *(1 for _ in extractor[name].shape[1:]))
                extractor[name] = extractor[name] / share.where(share > 0, share.new_ones(())).to(extractor[name].dtype)
        return made
