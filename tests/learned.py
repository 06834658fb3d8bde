"""Requests to a learner, as tests make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedsim.learning.learner import Learner, LocalTraining, Model, Trained
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.rule import Aggregation
from fedsim.learning.rules.update import Update
from fedsim.models.declared import Declared
from fedsim.models.table import ModelTable


def train(
    learner: Learner,
    model: Model,
    client: int,
    objective: Objective,
    *,
    use: int = 0,
    round_number: int = 1,
    state: Model | None = None,
    further: Mapping[str, Model] | None = None,
    **more: Any,
) -> Trained:
    """One local training."""
    task = LocalTraining(round_number, client, use, objective, **more)
    return learner.train(task, model, state=state or {}, further=further or {})


def update(sender: int, model: Model, weight: float, base: Model | None = None) -> Update:
    """What a client has sent."""
    return Update(sender, {"model": model}, base or {}, samples=0, steps=0, version=0, bytes=0.0, weight=weight)


def mean_of(learner: Learner, base: Model, updates: Sequence[Update], *, round_number: int = 1) -> Model:
    """The weighted mean of updates."""
    return Mean().apply(learner, {"model": base}, updates, aggregation(round_number=round_number))["model"]


def aggregation(
    *,
    round_number: int = 1,
    table: ModelTable | None = None,
    clients: int = 1,
) -> Aggregation:
    """What a rule may know beside the updates."""
    return Aggregation(round_number, table or Declared(parameters=1).table(None, None), clients)
