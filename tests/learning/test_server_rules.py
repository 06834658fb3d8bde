"""A server rule written outside of the package: an operation of its own, and a state in handles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from learned import update
from small_learner import small

from fedsim.learning.graph import Graph, Handle
from fedsim.learning.learner import Learner
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Inputs, Operation
from fedsim.learning.rules.changes import weighted_change
from fedsim.learning.rules.rule import ServerRule, State
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

    name: Literal["momentum"] = "momentum"
    beta: float = 0.9

    def apply(self, learner: Learner, state: State, updates: Sequence[Update], *, round_number: int) -> State:
        base = state["model"]
        change = weighted_change(learner, base, updates, round_number=round_number)
        given = {"base": base, "change": change, "momentum": state.get("momentum", {})}
        names = [*base, *(f"momentum.{part}" for part in base)]
        made = learner.apply(Step(self.beta, 1.0), given, names, round_number=round_number)
        momentum = {part: made[f"momentum.{part}"] for part in base}
        return {"model": {part: made[part] for part in base}, "momentum": momentum}


def test_momentum_on_the_server_has_the_vector_of_its_paper(tmp_path: Path) -> None:
    """w = (1, -2); clients of 3 and 1 samples whose mean change is (0.1, -0.05), twice."""
    run = small(tmp_path)
    graph = Graph("given")

    def model(*numbers: float) -> dict[str, Handle]:
        handle = graph.node(Init(str(numbers)), {}).output("classifier")
        handle.value = {"w": torch.tensor(numbers, dtype=torch.float64)}
        return {"classifier": handle}

    state: State = {"model": model(1.0, -2.0)}
    expected = ((1.1, -2.05), (1.29, -2.145))
    for number, wanted in enumerate(expected, start=1):
        base = state["model"]["classifier"]
        run.learner._forcer.force(base)
        start = base.value["w"]
        updates = [
            update(0, model(*(start + torch.tensor([0.2, -0.4])).tolist()), 3.0),
            update(1, model(*(start + torch.tensor([-0.2, 1.0])).tolist()), 1.0),
        ]
        state = Momentum().apply(run.learner, state, updates, round_number=number)
        run.learner._forcer.force(state["model"]["classifier"])
        assert state["model"]["classifier"].value["w"].tolist() == pytest.approx(wanted, abs=1e-6)
    run.store.close()
