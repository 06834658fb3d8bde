"""Sweeps in processes of their own, killed at a moment that is told in points: what is there is not run again."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sweeps import RADIO, computed, rows, scenario_file

from fedsim.errors import UserError
from fedsim.experiment.sweep.sweep import sweep

NO_RAY = importlib.util.find_spec("ray") is None
RADIOS = ["nb_iot_nb1", "lte_m_m1", "lte_m_m2", "nr_100mhz_private"]
VARY = {RADIO: RADIOS, "training.learning_rate": [0.1, 0.2, 0.3]}
FEW = {RADIO: RADIOS[:2], "training.learning_rate": [0.1, 0.2]}
ONE: dict[str, Any] = {"seeds": [1], "protocols": [{"name": "fedavg", "clients": 4}]}
KILLED = """
import os, signal, sys
from fedsim.experiment.sweep import display as sweep_display
from fedsim.experiment.sweep.sweep import sweep

happened = sweep_display.SweepDisplay.happened
def watched(display, point, event):
    happened(display, point, event)
    if display.ended == {points}:
        os.kill(os.getpid(), signal.SIGKILL)

sweep_display.SweepDisplay.happened = watched
sweep({path!r}, vary={vary!r}, out={out!r}, executor="serial")
"""
DIES_ONCE = """
import os, signal
from pathlib import Path

HERE = Path(__file__).parent

def samples(clients, rng):
    if os.getpid() != int((HERE / "parent").read_text()) and (HERE / "alive").exists():
        (HERE / "alive").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    x = rng.random((400, 1, 4, 4), dtype="float32")
    return {"x": x, "y": (x.mean((1, 2, 3)) > 0.5).astype("int64")}
"""
"""A data source: the first process that asks for it and is not the test's own is killed."""


def killed_after(points: int, folder: Path, out: Path, vary: dict[str, list[Any]]) -> None:
    """Start the sweep in another process, which is killed when so many points have ended."""
    code = KILLED.format(points=points, path=str(folder / "plant.yaml"), vary=vary, out=str(out))
    ended = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert ended.returncode == -signal.SIGKILL


def trained_by(store: Path) -> dict[str, int]:
    """How many trainings each run has computed."""
    return {
        path.stem: sum('"computed"' in line and '"train"' in line for line in path.read_text().splitlines())
        for path in (store / "ledger").glob("*.jsonl")
    }


def manifest(point: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((point / "manifest.json").read_text())
    return found


def ended_before(point: Path) -> bool:
    """Whether a point had ended when its sweep was killed; one that had just begun has no manifest yet."""
    return (point / "manifest.json").is_file() and manifest(point)["status"] == "finished"


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four of the points in one go."""
    folder = tmp_path_factory.mktemp("few")
    return sweep(scenario_file(folder, ONE), vary=FEW, out=folder / "sweep", executor="serial").folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twelve points in one go."""
    folder = tmp_path_factory.mktemp("whole")
    return sweep(scenario_file(folder, ONE), vary=VARY, out=folder / "sweep", executor="serial").folder


@pytest.mark.slow
def test_a_sweep_that_was_killed_computes_only_the_missing_points(tmp_path: Path, few: Path) -> None:
    check_what_is_computed_after_a_kill(tmp_path, few, FEW, after=2)


@pytest.mark.long
def test_a_sweep_of_twelve_points_that_was_killed_computes_only_the_missing_ones(tmp_path: Path, whole: Path) -> None:
    check_what_is_computed_after_a_kill(tmp_path, whole, VARY, after=5)


def check_what_is_computed_after_a_kill(folder: Path, whole: Path, vary: dict[str, list[Any]], *, after: int) -> None:
    """Kill the sweep *after* so many points, and start it again: it ends as *whole*, which went through."""
    path, out = scenario_file(folder, ONE), folder / "sweep"
    killed_after(after, folder, out, vary)
    before = trained_by(out / "store")
    ended = [point for point in (out / "points").iterdir() if ended_before(point)]
    assert len(ended) >= after
    untouched = {path: path.read_bytes() for point in ended for path in point.rglob("*") if path.is_file()}
    sweep(path, vary=vary, out=out, executor="serial")
    assert (out / "sweep.csv").read_bytes() == (whole / "sweep.csv").read_bytes()
    assert {path: path.read_bytes() for path in untouched} == untouched
    now = trained_by(out / "store")
    assert all(now[run] == before[run] for run in {manifest(point)["run"] for point in ended} & before.keys())
    once = sum(trained_by(whole / "store").values())
    assert sum(now.values()) <= once + 2 * 4 * 2, "but for the points that were under way, which had no checkpoint"


@pytest.mark.slow
def test_points_that_share_trainings_never_train_them_twice(few: Path) -> None:
    """Two radios for each of two learning rates, on several processes."""
    check_that_each_training_is_there_once(few, 2 * 2 * 4)


@pytest.mark.long
def test_twelve_points_that_share_trainings_never_train_them_twice(whole: Path) -> None:
    """Four radios for each of three learning rates."""
    check_that_each_training_is_there_once(whole, 3 * 2 * 4)


def check_that_each_training_is_there_once(folder: Path, trainings: int) -> None:
    trained = computed(folder / "store")
    assert len(trained) == trainings
    assert set(trained.values()) == {1}
    assert len({row["key"] for row in rows(folder / "store")}) > len(trained)


def dying(folder: Path) -> Path:
    """A scenario whose data source kills the first process of a pool."""
    (folder / "data.py").write_text(DIES_ONCE)
    (folder / "parent").write_text(str(os.getpid()))
    (folder / "alive").touch()
    data = {"name": "python", "path": "data.py:samples"}
    return scenario_file(folder, {**ONE, "data": data, "model": {"name": "softmax"}})


POOLS = [
    pytest.param("local", marks=pytest.mark.long),
    pytest.param("ray", marks=[pytest.mark.long, pytest.mark.skipif(NO_RAY, reason="Ray is not installed")]),
]


@pytest.mark.parametrize("pool", POOLS)
def test_a_process_that_is_killed_costs_its_point_another_try_and_nothing_else(tmp_path: Path, pool: str) -> None:
    vary = {RADIO: RADIOS[:2], "training.learning_rate": [0.1, 0.2]}
    path = dying(tmp_path)
    sweep(path, vary=vary, out=tmp_path / "sweep", executor="serial", pool=pool)
    assert not (tmp_path / "alive").exists(), "one was killed"
    sweep(path, vary=vary, out=tmp_path / "again", executor="serial")
    assert (tmp_path / "sweep" / "sweep.csv").read_bytes() == (tmp_path / "again" / "sweep.csv").read_bytes()
    assert set(computed(tmp_path / "sweep" / "store").values()) == {1}


@pytest.mark.long
@pytest.mark.skipif(NO_RAY, reason="Ray is not installed")
def test_a_sweep_on_a_cluster_comes_to_the_same_bytes(tmp_path: Path, whole: Path) -> None:
    sweep(scenario_file(tmp_path, ONE), vary=VARY, out=tmp_path / "sweep", executor="serial", pool="ray")
    assert (tmp_path / "sweep" / "sweep.csv").read_bytes() == (whole / "sweep.csv").read_bytes()
    assert set(computed(tmp_path / "sweep" / "store").values()) == {1}


@pytest.mark.skipif(not NO_RAY, reason="Ray is installed")
def test_a_missing_cluster_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--pool ray: Ray is not installed here; pip install 'ray>=2.50'"):
        sweep(scenario_file(tmp_path, ONE), vary=VARY, out=tmp_path / "sweep", pool="ray")
    assert not (tmp_path / "sweep").exists()
