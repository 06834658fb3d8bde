"""A run folder that is not what the command is about is one message that helps, and stays as it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from filelock import FileLock
from refusals import PLANT, Refusals, lay_out

from fedsim.cli import main


@pytest.fixture(scope="module")
def a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    lay_out({"plant.yaml": PLANT}, folder)
    out = folder / "plant"
    assert main(["run", str(folder / "plant.yaml"), "--no-training", "--quiet", "--out", str(out)]) == 0
    return out


@pytest.fixture
def finished(refused: Refusals, a_run: Path) -> Refusals:
    """There is a finished run, without training, in runs/plant."""
    lay_out({"plant.yaml": PLANT}, refused.folder)
    shutil.copytree(a_run, "runs/plant")
    return refused


def test_a_folder_with_another_scenarios_run(finished: Refusals) -> None:
    other = "runs/plant holds the run of a different scenario ({}); choose another folder with --out"
    finished.check("run", "plant.yaml", message=other.format("learn is false there and true here"))
    words = ["run", "plant.yaml", "--no-training", "--set", "training.epochs=2"]
    finished.check(*words, message=other.format("training.epochs is 1 there and 2 here"))
    words = ["run", "plant.yaml", "--no-training", "--only", "fedavg"]
    finished.check(*words, message=other.format("protocols is a list of 2 there and a list of 1 here"))


def test_a_folder_with_an_unfinished_run(finished: Refusals) -> None:
    path = finished.folder / "runs/plant/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "status": "running"}), "utf-8")
    message = "the run in runs/plant is not finished; go on with --resume, or choose another folder with --out"
    finished.check("run", "plant.yaml", "--no-training", message=message)
    command = "fedsim run runs/plant/scenario.yaml --out runs/plant --resume"
    for word in ("compare", "explain", "plot", "trace"):
        finished.check(word, "runs/plant", message=f"the run in runs/plant is not finished; go on with: {command}")


def test_an_unfinished_point_of_a_sweep_goes_on_with_its_own_store_and_options(finished: Refusals) -> None:
    point = finished.folder / "runs/study/points/0123456789ab"
    shutil.copytree("runs/plant", point)
    path, trained = point / "manifest.json", {"name": "processes", "asked": "processes", "torch_device": "cpu"}
    facts = {"status": "running", "store": "../../store", "executor": {**trained, "precision": "float64"}}
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **facts}), "utf-8")
    name = "runs/study/points/0123456789ab"
    command = f"fedsim run {name}/scenario.yaml --out {name} --resume --store runs/study/store --executor processes "
    message = f"the run in {name} is not finished; go on with: {command}--precision float64"
    finished.check("explain", name, message=message)


def test_a_folder_with_half_a_manifest(finished: Refusals) -> None:
    (finished.folder / "runs/plant/manifest.json").write_text("{", "utf-8")
    message = "runs/plant/manifest.json is not readable as a manifest; run the scenario again, into another folder"
    finished.check("run", "plant.yaml", "--no-training", message=message)


def test_a_folder_in_which_another_run_is_at_work(finished: Refusals) -> None:
    path = finished.folder / "runs/plant/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "status": "running"}), "utf-8")
    with FileLock("runs/plant/.lock"):
        message = "another run is at work in runs/plant; wait for it, or choose another folder with --out"
        finished.check("run", "plant.yaml", "--no-training", "--resume", message=message)
