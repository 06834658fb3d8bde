"""Figures as files: the same results, the same bytes; and nothing of matplotlib's own changes."""

from __future__ import annotations

import subprocess
import sys
from math import nan
from pathlib import Path

import matplotlib as mpl
import pytest
from tiny_results import rounds_of, write_results

from fedsim.experiment.results import Results
from fedsim.viz.save import save_figures

COSTS = {"traffic_by_protocol", "time_by_protocol", "overview"}
LEARNING = {"accuracy_over_time", "accuracy_over_bytes", "accuracy_over_rounds", "loss_over_rounds"}


def two_protocols(folder: Path, accuracy: float = 0.8, name: str = "tiny") -> Results:
    runs = [rounds_of(protocol, seed, [0.2, accuracy]) for protocol in ("fedavg", "fedprox") for seed in (1, 2)]
    return write_results(folder, runs, name=name)


@pytest.mark.parametrize("file_format", [pytest.param("png", marks=pytest.mark.long), "svg"])
def test_equal_results_give_equal_bytes(tmp_path: Path, file_format: str) -> None:
    results = two_protocols(tmp_path / "run")
    assert file_format in ("png", "svg")
    first = save_figures([results], tmp_path / "first", file_format)
    second = save_figures([results], tmp_path / "second", file_format)
    assert {path.name for path in first} == {f"{name}.{file_format}" for name in LEARNING | COSTS}
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_without_learning_only_costs_are_drawn(tmp_path: Path) -> None:
    results = write_results(tmp_path / "run", [rounds_of("fedavg", 1, [nan, nan])])
    assert {path.stem for path in save_figures([results], tmp_path / "figures")} == COSTS


def test_several_runs_share_their_figures(tmp_path: Path) -> None:
    runs = [two_protocols(tmp_path / "a", name="park"), two_protocols(tmp_path / "b", accuracy=0.6, name="hall")]
    paths = {path.stem: path for path in save_figures(runs, tmp_path / "figures", "svg")}
    drawing = paths["accuracy_over_time"].read_text()
    for title in ("park: fedavg", "park: fedprox", "hall: fedavg", "hall: fedprox"):
        assert f"<!-- {title} -->" in drawing  # matplotlib writes the text beside its outline


def test_matplotlib_is_left_as_it_was(tmp_path: Path) -> None:
    before = mpl.rcParams.copy()
    save_figures([write_results(tmp_path / "run", [rounds_of("fedavg", 1, [nan, nan])])], tmp_path / "figures")
    assert mpl.rcParams.copy() == before


def test_no_window_system_is_asked_for(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run", [rounds_of("fedavg", 1, [nan, nan])]).folder
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from fedsim import load_results\n"
        "from fedsim.viz.save import save_figures\n"
        f"save_figures([load_results({str(folder)!r})], Path({str(tmp_path / 'figures')!r}))\n"
        "assert 'matplotlib.pyplot' not in sys.modules, 'pyplot chooses a backend'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"MPLBACKEND": "tkagg", "PATH": ""})
