"""Server rules written outside of the package: an operation of their own, and a state in handles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from learned import update
from momentum import Momentum
from small_learner import Small, small

from fedsim.learning.graph import Graph, Handle
from fedsim.learning.operations.init import Init
from fedsim.learning.rules.gate_average import GateAverage
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
        state = Momentum().apply(run.learner, state, updates, round_number=number)
        run.learner._forcer.force(state["model"]["given"])
        assert state["model"]["given"].value["w"].tolist() == pytest.approx(wanted, abs=1e-6)
    run.store.close()


def gates_in_turn(run: Small, share: float, rounds: int = 2) -> list[dict[str, list[float]]]:
    """A gate of 0.5 and a weight of 1, of which two clients make 0.7 and 1.2, and 0.3 and 1.6, each time."""
    graph, found = Graph("given"), []

    def model(gate: float, weight: float) -> dict[str, Handle]:
        handle = graph.node(Init(f"{gate} {weight}"), {}).output("extractor")
        handle.value = {"fusion.gate": torch.tensor([gate]).double(), "fc.weight": torch.tensor([weight]).double()}
        return {"extractor": handle}

    state: State = {"model": {**model(0.5, 1.0), "classifier": model(3.0, 3.0)["extractor"]}}
    for number in range(1, rounds + 1):
        updates = [update(0, model(0.7, 1.2), 3.0), update(1, model(0.3, 1.6), 1.0)]
        classifier = state["model"]["classifier"]
        state = GateAverage(share=share).apply(run.learner, state, updates, round_number=number)
        assert state["model"]["classifier"] is classifier, "nobody has trained it"
        run.learner._forcer.force(state["model"]["extractor"])
        found.append({name: tensor.tolist() for name, tensor in state["model"]["extractor"].value.items()})
    return found


def test_gates_move_by_their_share_only_and_weights_all_the_way(tmp_path: Path) -> None:
    """Means 0.6 and 1.3: 0.1 * 0.6 + 0.9 * 0.5 = 0.51, then 0.1 * 0.6 + 0.9 * 0.51 = 0.519."""
    run = small(tmp_path)
    first, second = gates_in_turn(run, share=0.1)
    run.store.close()
    assert first == {"fusion.gate": [pytest.approx(0.51)], "fc.weight": [pytest.approx(1.3)]}
    assert second == {"fusion.gate": [pytest.approx(0.519)], "fc.weight": [pytest.approx(1.3)]}


def test_a_share_of_1_is_the_mean(tmp_path: Path) -> None:
    run = small(tmp_path)
    (only,) = gates_in_turn(run, share=1.0, rounds=1)
    run.store.close()
    assert only == {"fusion.gate": [pytest.approx(0.6)], "fc.weight": [pytest.approx(1.3)]}
