"""What factors rounded to bfloat16 cost: nothing that can be told after 50 rounds, though each update differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import pytest

from fedsim.experiment.run import run

ROUNDS, SEEDS = 50, [1, 2, 3]
SCENARIO: dict[str, Any] = {
    "model": {"name": "resnet", "normalisation": "group"},
    "stop.rounds": ROUNDS,
    "evaluate": {"every": ROUNDS},
    "seeds": SEEDS,
    "training": {"learning_rate": 0.05, "batch_size": 16},
    "protocols": [{"name": "fedavg", "clients": 5}],
}


@pytest.mark.long
def test_a_residual_network_learns_as_well(tmp_path: Path) -> None:
    accuracies = {}
    for precision in ("float32", "bfloat16"):
        rounds = run(digit_runs.scenario(SCENARIO), out=tmp_path / precision, precision=precision).rounds
        accuracies[precision] = rounds[rounds["round"] == ROUNDS].sort_values("seed")["accuracy"].tolist()
    assert len(accuracies["bfloat16"]) == len(SEEDS)
    assert accuracies["bfloat16"] != accuracies["float32"], "something is rounded"
    assert min(accuracies["float32"]) > 0.9
    means = {precision: sum(found) / len(SEEDS) for precision, found in accuracies.items()}
    assert means["bfloat16"] > means["float32"] - 0.02
