"""A protocol that changes its model, in runs that are cut short or have late clients at that moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import pytest

import fedsim
from fedsim.experiment.results import Results

PRETRAINED = 2
SLOW = {
    "network.cell.radio": {"name": "fixed", "uplink_bps": 1e5, "downlink_bps": 1e5},
    "evaluate": {"every": 50},
}


def run(folder: Path, stop: dict[str, Any], more: dict[str, Any] | None = None, **keys: Any) -> Results:
    cgau = {"name": "cgau", "clients": 8, "pretraining_rounds": PRETRAINED, "units": 8, **keys}
    scenario = digit_runs.scenario({**SLOW, **(more or {}), "protocols": [cgau], "stop": stop})
    return fedsim.run(scenario, out=folder, progress=False)


def test_a_run_that_ends_in_the_first_round_of_the_second_model_has_the_first_one(tmp_path: Path) -> None:
    results = run(tmp_path / "run", {"sim_time_s": 2.0})
    assert len(results.rounds) == PRETRAINED
    assert results.rounds["accuracy"].notna().tolist() == [False, True]
    assert set(digit_runs.weights(results, "cgau")) == {
        "extractor.fc1.weight",
        "extractor.fc1.bias",
        "classifier.fc2.weight",
        "classifier.fc2.bias",
    }
    assert "model" not in results.manifest["runs"][0]
    assert len(list(results.load_model("cgau", 1).parameters())) == 4


def test_the_last_model_before_the_change_is_evaluated(tmp_path: Path) -> None:
    results = run(tmp_path / "run", {"rounds": PRETRAINED + 2})
    assert results.rounds["accuracy"].notna().tolist() == [False, True, False, True]


@pytest.mark.parametrize("late", ["finish", "cancel"])
def test_who_is_late_when_the_model_changes_is_given_up(tmp_path: Path, late: str) -> None:
    results = run(tmp_path / "run", {"rounds": PRETRAINED + 2}, {"network.late_transfers": late}, deadline_s=0.05)
    rounds = results.rounds
    assert (rounds["late"] > 0).all()  # the model is still on its way down when each round ends
    assert len(rounds) == PRETRAINED + 2
