"""``fedsim advise``: what is printed where, and what is refused before anything is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import digit_runs
import pytest

from fedsim.cli import main
from fedsim.experiment.advise import advise as module

CHANGES: dict[str, Any] = {
    "stop.rounds": 8,
    "seeds": [1],
    "training.learning_rate": 0.3,
    "protocols": [{"name": "fedavg", "clients": 4}],
}


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario's file, in a folder of its own that commands run in."""
    monkeypatch.chdir(tmp_path)
    return written(tmp_path)


def written(folder: Path, changes: dict[str, Any] | None = None) -> Path:
    path = folder / "plant.yaml"
    path.write_text(json.dumps(digit_runs.data(CHANGES | (changes or {}))).replace("Infinity", ".inf"))
    return path


@pytest.mark.slow
def test_table_and_verdict_go_to_standard_output_and_all_else_to_standard_error(
    plant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["advise", str(plant), "--target", "0.5", "--within", "round=8", "--executor", "serial"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("| protocol | reached |")
    assert "fedavg reaches 0.5 on seed 1, in " in out
    assert "Run it: fedsim run " in err and "rung 1 of 3" in err
    assert (Path("runs") / "digits-advice" / "advice.json").exists()
    assert main([*words, "--quiet", "--format", "csv"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith("protocol,n,reached,")
    assert len(out.splitlines()) == 2 and err.startswith("\nfedavg reaches")


@pytest.mark.parametrize(
    ("changes", "words", "said"),
    [
        ({}, ["--target", "1.2"], "'1.2' must be an accuracy between 0 and 1"),
        ({}, ["--target", "90"], "did you mean 0.9?"),
        ({}, ["--target", "0.9", "--within", "sim_time=3"], "did you mean 'sim_time_s'"),
        ({}, ["--target", "0.9", "--within", "sim_time_s=-3"], "a finite number above 0"),
        (
            {},
            ["--target", "0.9", "--within", "round=3", "--within", "round=4"],
            "--within round=4: stands twice; give each budget once",
        ),
        ({}, ["--target", "0.9", "--within", "network_bytes=3"], "a run cannot be stopped at network_bytes"),
        ({}, ["--target", "0.9", "--within", "round=0.5"], "round=0.5 must be at least 1"),
        ({}, ["--target", "0.9", "--by", "energy_j"], "--by: 'energy_j' must be one of sim_time_s"),
        ({}, ["--target", "0.9", "--vary", "stop.rounds=1,2"], "--vary stop.rounds: --within and --target say"),
        ({}, ["--target", "0.9", "--vary", "seeds=[1],[2]"], "--vary seeds: give --seeds"),
        ({}, ["--target", "0.9", "--vary", "training.epoch=1,2"], "did you mean 'epochs'"),
        ({"learn": False}, ["--target", "0.9"], "learn: false, and an accuracy is only reached by training"),
        ({"stop": {"target_accuracy": 0.5}}, ["--target", "0.9"], "stop: is a target alone"),
        (
            {"protocols": [{"name": "fedavg", "clients": 4, "stop": {"rounds": 3}}]},
            ["--target", "0.9"],
            "protocols[0]: 'fedavg' has a stop of its own",
        ),
        ({"newcomers": {"clients": 2, "epochs": 1}}, ["--target", "0.9"], "newcomers: come when a run is over"),
        ({}, ["--target", "0.9", "--pool-size", "0"], "must be a whole number of at least 1"),
        ({}, ["--target", "0.9", "--out", "taken"], "is not empty and is no search's (it has notes.txt)"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(
    plant: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], words: list[str], said: str
) -> None:
    written(plant.parent, changes)
    taken = plant.parent / "taken" / "notes.txt"
    taken.parent.mkdir()
    taken.write_text("mine")
    assert main(["advise", str(plant), *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert sorted(path.name for path in plant.parent.rglob("*")) == ["notes.txt", "plant.yaml", "taken"]


def test_an_interruption_says_how_to_go_on(
    plant: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "search", interrupted)
    assert main(["advise", str(plant), "--target", "0.9", "--out", "a b"]) == 130
    assert f"go on with: fedsim advise {plant} --target 0.9 --out 'a b'" in capsys.readouterr().err


def test_numbers_are_no_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbers.csv").write_text("a,b,y\n" + "".join(f"{i},{i * 2},{i / 3}\n" for i in range(200)))
    data = {"name": "csv", "path": "numbers.csv", "target": "y", "task": "regression"}
    plant = written(tmp_path, {"data": data, "model": {"name": "mlp", "hidden": [4]}, "topology.devices": 4})
    assert main(["advise", str(plant), "--target", "0.9"]) == 2
    assert "is never reached by a model that predicts numbers" in capsys.readouterr().err
