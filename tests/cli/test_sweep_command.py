"""``fedsim sweep``, and what `compare` and `plot` make of its folder. Nothing is trained: processes begin quickly."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import PLANT, Refusals, lay_out

from fedsim.cli import main
from fedsim.errors import RunFailedError

RADIO = "--vary=network.cell.radio.uplink_bps=1.0e+5,1.0e+6"
Command = Callable[..., tuple[str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Execute a command that works; returns what it wrote to standard output and to standard error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.yaml").write_text(PLANT)

    def execute(*words: str) -> tuple[str, str]:
        assert main(words) == 0
        said = capsys.readouterr()
        return said.out, said.err

    return execute


SWEEP = ("sweep", "plant.yaml", "--no-training", RADIO, "--vary", "protocols.fedavg.fraction=0.25,0.5")


@pytest.mark.slow
def test_it_prints_a_row_for_each_point_and_protocol_and_leaves_a_table(command: Command, tmp_path: Path) -> None:
    out, err = command(*SWEEP)
    head, _, *rows = out.splitlines()
    assert [cell.strip() for cell in head.split("|")][1:4] == ["radio.uplink_bps", "fedavg.fraction", "protocol"]
    assert len(rows) == 2 * 2 * 2
    assert "4 points, of which 0 are there already" in err
    assert err.splitlines()[-2:] == [
        "All rows: runs/plant-sweep/sweep.csv",
        "Draw figures: fedsim plot runs/plant-sweep",
    ]
    with (tmp_path / "runs" / "plant-sweep" / "sweep.csv").open() as file:
        table = list(csv.DictReader(file))
    assert {row["network.cell.radio.uplink_bps"] for row in table} == {"100000.0", "1000000.0"}

    again, err = command(*SWEEP, "--quiet")
    assert again == out and err == ""
    compared, _ = command("compare", "runs/plant-sweep")
    assert compared == out
    markdown, _ = command("compare", "runs/plant-sweep", "--format", "markdown", "--at", "round=1")
    assert "simulated time (ms)" in markdown and r"radio.uplink\_bps" in markdown
    numbers, _ = command("compare", "runs/plant-sweep", "--format", "csv", "--csv", "all.csv")
    assert numbers == (tmp_path / "all.csv").read_text()
    assert numbers.startswith("radio.uplink_bps,fedavg.fraction,run,protocol,")
    drawn, _ = command("plot", "runs/plant-sweep", "--format", "svg")
    assert [Path(path).name for path in drawn.splitlines()] == [
        "lines-time.svg",
        "heatmap-time.svg",
        "lines-traffic.svg",
        "heatmap-traffic.svg",
    ]

    explained, _ = command("explain", "runs/plant-sweep")
    assert "| radio.uplink_bps=100000.0, fedavg.fraction=0.25 " in explained
    assert table[0]["point"] not in explained


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--vary", "stop.rounds"], "--vary stop.rounds: is not of the form key.path=value,value, for example ..."),
        (["--vary", "stop.round=1,2"], "--vary stop.round=1: stop.round: unknown key; did you mean 'rounds'? ..."),
        (
            ["--vary", "protocols.fedavg.fraction=0.5,2"],
            "--vary protocols.fedavg.fraction=2: protocols[0].fraction: 2 ...",
        ),
        (
            ["--vary", "protocols.fedavgg.fraction=0.5,1"],
            "--vary protocols.fedavgg.fraction=0.5: protocols has no item called 'fedavgg'; did you mean 'fedavg'? ...",
        ),
        ([], "plant.yaml: has no section sweep; give --vary key.path=value,value, or write one"),
        (
            ["--vary", "training.epochs=1,2", "--out", "notes"],
            "notes is not empty and is no sweep's (it has a.txt); ...",
        ),
        (
            ["--vary", "training.epochs=1,2", "--out", "plant.yaml"],
            "plant.yaml is not a folder; choose another one ...",
        ),
        (
            ["--vary", "training.epochs=1,2", "--store", "notes"],
            "notes is not empty and is no store (it has a.txt); ...",
        ),
    ],
)
def test_a_wrong_sweep_is_one_message(refused: Refusals, words: list[str], message: str) -> None:
    lay_out({"plant.yaml": PLANT, "notes/a.txt": "mine"}, refused.folder)
    refused.check("sweep", "plant.yaml", *words, message=message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pool-size", "0"], "argument --pool-size: '0' must be a whole number of at least 1, as in 2"),
        (["--workers", "0"], "argument --workers: '0' must be a whole number of at least 1, as in 2"),
        (["--pool", "cloud"], "argument --pool: invalid choice: 'cloud' (choose from ...)"),
    ],
)
def test_a_wrong_option_is_one_message(refused: Refusals, words: list[str], message: str) -> None:
    lay_out({"plant.yaml": PLANT}, refused.folder)
    refused.check("sweep", "plant.yaml", *words, message=f"...\nfedsim sweep: error: {message}", begins="usage: ")


def test_a_run_leaves_the_section_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plant.yaml").write_text(PLANT + "sweep: {grid: {training.epochs: [1, 2]}}\n")
    assert main(["run", str(tmp_path / "plant.yaml"), "--no-training", "--out", str(tmp_path / "run"), "--quiet"]) == 0
    assert "sweep: null" in (tmp_path / "run" / "scenario.yaml").read_text()


def test_validate_checks_the_points_of_a_section(refused: Refusals, capsys: pytest.CaptureFixture[str]) -> None:
    lay_out({"wrong.yaml": PLANT + "sweep: {grid: {training.nosuch: [1]}}\n"}, refused.folder)
    refused.check("validate", "wrong.yaml", message="sweep: training.nosuch=1: training.nosuch: unknown key ...")
    lay_out({"right.yaml": PLANT + "sweep: {grid: {training.epochs: [1, 2, 3]}}\n"}, refused.folder)
    assert main(["validate", "right.yaml"]) == 0
    assert "a sweep of 3 points (their worlds were not built)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stopped", "said"),
    [
        (KeyboardInterrupt(), "interrupted; "),
        (RunFailedError("1 of 2 points have no result"), "1 of 2 points have no result\n"),
        (MemoryError(), "the sweep failed (there is not enough memory for it); "),
        (OSError(28, "No space left on device", "a.csv"), "the sweep failed (No space left on device: a.csv); "),
    ],
)
def test_a_sweep_that_was_stopped_says_how_to_go_on(
    stopped: BaseException, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise stopped

    monkeypatch.setattr("fedsim.experiment.sweep.sweep.sweep_variation", stop)
    words = ["sweep", "my plant.yaml", "--vary", "training.epochs=1, 2", "--store", "a store", "--pool", "local"]
    assert main(words) == (130 if isinstance(stopped, KeyboardInterrupt) else 1)
    assert capsys.readouterr().err == f"fedsim: {said}go on with: {shlex.join(['fedsim', *words])}\n"
