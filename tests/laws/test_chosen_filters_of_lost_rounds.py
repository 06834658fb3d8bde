"""Nothing arrives for several rounds, and nothing is evaluated: a client trains again before its last training is."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from tiers import mostly_long

import fedsim


@pytest.mark.parametrize(
    ("protocol", "executor"),
    mostly_long(product(["spatl", "spatl_no_control"], ["serial", "batched"]), now=[("spatl", "batched")]),
)
def test_a_client_trains_twice_from_one_extractor(tmp_path: Path, protocol: str, executor: str) -> None:
    """By the clock all are late; the last evaluation is the first one that asks for anything."""
    changes: dict[str, Any] = {
        "topology.devices": 2,
        "data": {"name": "digits", "partition": {"name": "iid"}, "client_test_fraction": 0.2},
        "model": {"name": "small_cnn"},
        "network.cell.loss": {"probability": 0.5, "attempts": 1},
        "evaluate": {"on": ["own"], "every": 8},
        "stop.rounds": 8,
        "protocols": [{"name": protocol, "fraction": 1.0, "selection": {"name": "uniform", "keep": 0.5}}],
    }
    scenario = digit_runs.scenario(changes)
    results = fedsim.run(scenario, out=tmp_path / "run", executor=executor)
    often = fedsim.run(
        digit_runs.scenario(changes | {"evaluate": {"on": ["own"]}}), out=tmp_path / "often", executor=executor
    )
    assert results.rounds["lost"].sum() > 4
    assert results.rounds["accuracy"].iloc[-1] == often.rounds["accuracy"].iloc[-1]
