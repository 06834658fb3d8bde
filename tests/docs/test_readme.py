"""The README's commands run in their order, in one folder, and its numbers are those that its own scenarios give."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pages import ROOT, columns, fenced, files
from tiers import mostly_long

from fedsim.cli import main
from fedsim.experiment.run import run
from fedsim.scenario.load import load
from fedsim.viz.human import duration

README = ROOT / "README.md"
MODELS = {"small": [], "large": ["model={name: hfedms_cnn}", "data.pixels=28"]}
ROWS = re.findall(r"^\| (\w+) \| ([\d.]+ \w+) \| ([\d.]+ \w+) \|$", README.read_text(encoding="utf-8"), re.MULTILINE)


DEMO = [["run", "scenarios/quickstart.yaml", "--out", "runs/quickstart"], ["plot", "runs/quickstart"]]
"""What `make demo` does after the installation."""
DEMO_TABLE = README.read_text("utf-8").split("<!-- demo table -->\n")[1].split("<!-- end of demo table -->")[0]


def commands() -> list[list[str]]:
    """The words of each command of the README, in their order."""
    lines = [line for block in fenced(README, "text") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("fedsim ")]


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what a clone has, in which a reader is."""
    for name in ("scenarios", "topologies"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_the_commands_run_in_their_order_in_one_folder(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in files(README).items():
        (clone / name).write_text(content, encoding="utf-8")
    printed = []
    for words in [*DEMO, *commands()]:
        assert main(words) == 0, f"{words}: {capsys.readouterr().err}"
        printed.append(capsys.readouterr().out)
    assert_alike(columns(printed[0].split("Results:")[0].strip()), columns(DEMO_TABLE.strip()))


def assert_alike(printed: dict[str, list[str]], shown: dict[str, list[str]]) -> None:
    """What was learned may differ by rounding, far less than by the seed; all else is equal."""
    assert printed.keys() == shown.keys()
    for column in printed.keys() - {"accuracy", "loss"}:
        assert printed[column] == shown[column]
    for column in ("accuracy", "loss"):
        for ours, theirs in zip(printed[column], shown[column], strict=True):
            mean, interval = map(float, theirs.split(" +/- "))
            assert abs(float(ours.split(" +/- ")[0]) - mean) < interval


def test_the_commands_are_those_that_a_reader_needs_first() -> None:
    first = {"new", "validate", "describe", "draw", "run", "compare", "plot", "retime", "sweep", "advise"}
    assert {words[0] for words in commands()} == first
    outs = [words[words.index("--out") + 1] for words in commands() if "--out" in words]
    assert len(outs) == len(set(outs))


@pytest.fixture
def plant(tmp_path: Path) -> Path:
    path = tmp_path / "plant.yaml"
    path.write_text(fenced(README, "yaml")[0], encoding="utf-8")
    return path


def test_there_is_a_row_for_each_of_four_radios() -> None:
    assert [profile for profile, *_ in ROWS] == ["nb_iot_nb1", "nb_iot_nb2", "lte_m_m1", "lte_m_m2"]


@pytest.mark.parametrize(("profile", "small", "large"), mostly_long(ROWS, now=[ROWS[0], ROWS[2]]))
def test_the_table_of_radios(profile: str, small: str, large: str, plant: Path, tmp_path: Path) -> None:
    simulated = []
    for model, overrides in MODELS.items():
        overrides = ["learn=false", f"network.cell.radio.profile={profile}", *overrides]
        results = run(load(plant, overrides=overrides), out=tmp_path / model)
        simulated.append(duration(results.rounds["sim_time_s"].iloc[-1]))
    assert simulated == [small, large]


def test_the_scenario_is_as_short_as_promised() -> None:
    assert len(fenced(README, "yaml")[0].splitlines()) <= 25


def test_the_picture_is_small() -> None:
    assert (ROOT / "docs/images/quickstart.png").stat().st_size < 150_000
