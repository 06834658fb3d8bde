"""Server rules written outside of the package: an operation of their own, and a state in handles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from learned import aggregation, update
from momentum import Momentum
from small_learner import small

from fedsim.learning.graph import Graph, Handle
from fedsim.learning.operations.init import Init
from fedsim.learning.rules.rule import State


def test_momentum_on_the_server_has_the_vector_of_its_paper(tmp_path: Path) -> None:
    """w = (1, -2); clients of 3 and 1 samples whose mean change is (0.1, -0.05), twice."""
    run = small(tmp_path)
    graph = Graph("given")

    def model(*numbers: float) -> dict[str, Handle]:
        handle = graph.node(Init(str(numbers)), {}).output("given")
        handle.value = {"w": torch.tensor(numbers, dtype=torch.float64)}
        return {"given": handle}

    state: State = {"model": model(1.0, -2.0)}
    expected = ((1.1, -2.05), (1.29, -2.145))
    for number, wanted in enumerate(expected, start=1):
        base = state["model"]["given"]
        run.learner._forcer.force(base)
        start = base.value["w"]
        updates = [
            update(0, model(*(start + torch.tensor([0.2, -0.4])).tolist()), 3.0),
            update(1, model(*(start + torch.tensor([-0.2, 1.0])).tolist()), 1.0),
        ]
        state = Momentum().apply(run.learner, state, updates, aggregation(round_number=number))
        run.learner._forcer.force(state["model"]["given"])
        assert state["model"]["given"].value["w"].tolist() == pytest.approx(wanted, abs=1e-6)
    run.store.close()
