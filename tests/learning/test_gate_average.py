"""FedFusion's server: gates follow the mean of the updates slowly."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from learned import aggregation, update
from small_learner import Small, small

from fedsim.learning.graph import Graph, Handle
from fedsim.learning.operations.init import Init
from fedsim.learning.rules.gate_average import GateAverage
from fedsim.learning.rules.rule import State


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
        state = GateAverage(share=share).apply(run.learner, state, updates, aggregation(round_number=number))
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
