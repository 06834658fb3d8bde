"""Results that could be misread come with a remark, and others do not."""

from __future__ import annotations

from math import nan
from pathlib import Path

import pytest
from small_worlds import scenario
from tiny_results import rounds_of, write_results

from fedsim import cli
from fedsim.experiment.remarks import remarks
from fedsim.experiment.run import run
from fedsim.scenario.load import written_out


def test_an_ordinary_run_needs_no_remark(tmp_path: Path) -> None:
    assert remarks(run(scenario({"stop": {"rounds": 2}}), out=tmp_path / "run")) == []


def test_no_round_ended(tmp_path: Path) -> None:
    results = run(scenario({"stop": {"sim_time_s": 1.0}}), out=tmp_path / "run")
    assert remarks(results) == ["fedavg on seed 1: no round ended before the run did, so there is nothing to compare"]


def test_no_update_arrived(tmp_path: Path) -> None:
    protocol = {"name": "fedavg", "fraction": 1.0, "deadline_s": 2.0}
    results = run(scenario({"stop": {"rounds": 3}, "protocols": [protocol]}), out=tmp_path / "run")
    assert remarks(results) == [
        "fedavg on seed 1: no update arrived in time in any of 3 rounds, so the model was never trained"
    ]


@pytest.mark.parametrize(("in_vain", "told"), [(0, False), (1, False), (2, True), (19, True)])
def test_no_update_arrived_in_some_rounds(tmp_path: Path, in_vain: int, told: bool) -> None:
    rounds = rounds_of("fedavg", 1, [0.1 + number / 100 for number in range(20)])
    results = write_results(tmp_path / "run", [rounds.assign(participants=[0] * in_vain + [3] * (20 - in_vain))])
    remark = f"fedavg on seed 1: no update arrived in time in {in_vain} of 20 rounds, which changed nothing"
    assert remarks(results) == [remark] * told


@pytest.mark.parametrize(
    ("accuracies", "losses", "worse"),
    [
        ([0.3, nan, 0.1], [2.3, nan, 140.0], True),
        ([0.1, 0.1], [2.3, 2.4], True),
        ([0.3, 0.4], [2.3, 2.4], False),  # surer of its errors, but it makes fewer
        ([0.3, 0.2], [2.3, 2.2], False),
        ([0.1, nan], [2.3, nan], False),
        ([nan, nan], [nan, nan], False),
    ],
)
def test_the_model_got_worse(tmp_path: Path, accuracies: list[float], losses: list[float], worse: bool) -> None:
    rounds = rounds_of("fedavg", 1, accuracies).assign(loss=losses)
    remark = (
        f"fedavg on seed 1: the model got worse with training (loss 2.3 -> {losses[-1]:g}); try a smaller learning_rate"
    )
    results = write_results(tmp_path / "run", [rounds.assign(participants=3)])
    assert remarks(results) == ([remark] if worse else [])


def test_training_diverged_and_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learning = {
        "learn": True,
        "data": {"name": "digits"},
        "model": {"name": "mlp"},
        "training.learning_rate": 1e12,
        "stop": {"rounds": 3},
    }
    path = tmp_path / "scenario.yaml"
    path.write_text(written_out(scenario(learning)))
    assert cli.main(["run", str(path), "--out", str(tmp_path / "run")]) == 0
    assert "Remark: fedavg on seed 1: training diverged" in capsys.readouterr().err
    assert cli.main(["compare", str(tmp_path / "run")]) == 0
    assert "Remark: fedavg on seed 1: training diverged" in capsys.readouterr().err
