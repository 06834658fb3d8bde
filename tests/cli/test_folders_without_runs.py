"""``runs/*`` holds more than runs: what is none is passed over with a remark, and what is damaged is an error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import Files, Refusals, lay_out
from tiny_results import rounds_of, write_results

from fedsim.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run, called b, that stands between other things."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    write_results(tmp_path / "runs/b", [rounds_of("fedavg", 1, [0.5])], name="b")
    (tmp_path / "runs/a.txt").write_text("notes")
    (tmp_path / "runs/c").mkdir()
    (tmp_path / "runs/c/scenario.yaml").write_text("name: c\n")
    return tmp_path / "runs"


def unfinished(runs: Path) -> None:
    write_results(runs / "d", [rounds_of("fedavg", 1, [0.5])], name="d")
    path = runs / "d/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "running"}))


def everything(runs: Path) -> list[str]:
    return sorted(str(path.relative_to(runs.parent)) for path in runs.iterdir())


@pytest.mark.parametrize("command", [["compare"], ["plot", "--out", "figures"]])
def test_what_is_no_finished_run_is_passed_over_and_told(command: list[str], runs: Path, capsys: Capture) -> None:
    unfinished(runs)
    assert main([command[0], *everything(runs), *command[1:]]) == 0
    captured = capsys.readouterr()
    assert captured.out and "passed over" not in captured.out
    assert [line for line in captured.err.splitlines() if "passed over" in line] == [
        "Remark: passed over: runs/a.txt is no run folder: it has no manifest.json",
        "Remark: passed over: runs/c is no run folder: it has no manifest.json",
        "Remark: passed over: the run in runs/d is not finished; go on with: "
        "fedsim run runs/d/scenario.yaml --out runs/d --resume",
    ]


def test_one_path_is_meant_as_it_is(runs: Path, capsys: Capture) -> None:
    for path in ("runs/a.txt", "runs/c"):
        assert main(["compare", path]) == 2
        assert capsys.readouterr() == ("", f"fedsim: {path} is no run folder: it has no manifest.json\n")


def test_where_no_run_is_left_there_is_one_message(runs: Path, capsys: Capture) -> None:
    for command in (["compare"], ["plot", "--out", "figures"]):
        assert main([command[0], "runs/a.txt", "runs/c", *command[1:]]) == 2
        captured = capsys.readouterr()
        expected = "none of these 2 is a finished run; the first: runs/a.txt is no run folder: it has no manifest.json"
        assert captured == ("", f"fedsim: {expected}\n")
    assert not (runs.parent / "figures").exists()


def spoil_manifest(run: Path) -> None:
    (run / "manifest.json").write_text("{")


def lose_manifest(run: Path) -> None:
    (run / "manifest.json").unlink()


def lose_table(run: Path) -> None:
    (run / "summary.csv").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (spoil_manifest, "runs/e/manifest.json is not readable as a manifest"),
        (lose_manifest, "runs/e has lost its manifest.json"),
        (lose_table, "runs/e has lost its summary.csv"),
    ],
)
def test_a_damaged_run_is_no_stranger(
    damage: Callable[[Path], None], message: str, runs: Path, capsys: Capture
) -> None:
    write_results(runs / "e", [rounds_of("fedavg", 1, [0.5])], name="e")
    damage(runs / "e")
    for folders in (["runs/e"], everything(runs)):
        assert main(["compare", *folders]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and message in captured.err and len(captured.err.splitlines()) == 1


def test_a_path_that_is_not_there_is_a_mistake(runs: Path, capsys: Capture) -> None:
    assert main(["compare", "runs/b", "runs/bb"]) == 2
    assert "there is no run folder runs/bb; did you mean 'runs/b'?" in capsys.readouterr().err


def test_figures_go_to_the_run_that_is_left(runs: Path, capsys: Capture) -> None:
    assert main(["plot", "runs/a.txt", "runs/b"]) == 0
    assert "runs/b/figures/overview.png" in capsys.readouterr().out
    assert (runs / "b/figures/overview.png").exists()


@pytest.mark.parametrize("words", ["trace", "retime"])
def test_a_sweep_is_not_one_run(words: str, refused: Refusals) -> None:
    lay_out({"runs/study/sweep.json": "{}"}, refused.folder)
    message = (
        "runs/study is the folder of a sweep; give one of its points, runs/study/points/KEY (the column point of "
        "runs/study/sweep.csv has each KEY)"
    )
    refused.check(*words.split(), "runs/study", message=message)


COMMAND = "fedsim run plant.yaml --out runs/a/run-0b"
SEARCHES: dict[str, tuple[Files, str]] = {
    "what it found was not run": ({"advice.json": json.dumps({"command": COMMAND})}, f"run that this makes: {COMMAND}"),
    "what it found was run": (
        {"advice.json": json.dumps({"command": COMMAND}), "run-0b/manifest.json": "{}"},
        "run of what it has found, runs/a/run-0b",
    ),
    "it found nothing": ({"advice.json": json.dumps({"command": None})}, "folder of a run"),
    "it was cut off": ({"advice.json": "{"}, "folder of a run"),
}


@pytest.mark.parametrize(("files", "give"), SEARCHES.values(), ids=SEARCHES)
def test_a_search_is_no_run(files: Files, give: str, refused: Refusals) -> None:
    lay_out({f"runs/a/{name}": content for name, content in files.items()}, refused.folder)
    message = f"runs/a is the folder of a search (fedsim advise) with its table in advice.csv; give the {give}"
    for words in ("compare", "explain", "plot", "report", "export --to parquet", "trace", "retime"):
        refused.check(*words.split(), "runs/a", message=message)
