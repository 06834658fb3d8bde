"""Run folders that were damaged, or made to do harm: a run goes on to the same tables, or says in one line why not."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from small_worlds import scenario
from tiers import mostly_long

from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.results import load_results
from fedsim.experiment.run import run
from fedsim.learning.stored_values import with_digest

LEARNING: dict[str, Any] = {
    "learn": True,
    "data": {"name": "digits"},
    "model": {"name": "softmax"},
    "topology.devices": 4,
    "stop": {"rounds": 2},
}
TABLES = ("rounds.csv", "summary.csv", "links.csv")


class Interrupts(Observer):
    """Ends a run after its first round."""

    def round_done(self, protocol: object, seed: int, done: Any) -> None:
        if done.number == 1:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has finished, and one that was interrupted."""
    folder = tmp_path_factory.mktemp("made")
    run(scenario(LEARNING), out=folder / "whole", executor="serial")
    with pytest.raises(KeyboardInterrupt):
        run(
            scenario(LEARNING),
            out=folder / "run",
            executor="serial",
            checkpoint_interval_s=1e-9,
            observer=Interrupts(),
        )
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the working folder."""
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "here"))
    return tmp_path / "here"


def goes_on(*options: str) -> int:
    """The exit status of the run that goes on."""
    return main(["run", "run/scenario.yaml", "--out", "run", "--resume", "--executor", "serial", *options])


def one_message(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr().err
    assert said.startswith("fedsim: ") and said.count("\n") == 1 and said[:-1].isprintable() and len(said) < 1_000
    assert "delete" not in said and "remove" not in said
    return said.removeprefix("fedsim: ").removesuffix("\n")


def tables(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in TABLES]


def changes(key: str, value: object) -> None:
    path = Path("run/manifest.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), key: value}))


def stored(kind: str) -> Path:
    return sorted(Path("run/store", kind).iterdir())[0]


# -- stores that are somebody else's ----------------------------------------------------------------------------------


def victim() -> dict[str, bytes]:
    """A folder that holds what somebody needs, called as a store's files are."""
    for kind in ("tensors", "index", "metrics", "ledger"):
        Path("victim", kind).mkdir(parents=True, exist_ok=True)
    Path("victim/tensors/model.safetensors").write_bytes(b"years of work")
    Path(f"victim/tensors/{'0' * 32}-{'0' * 8}-v.safetensors").write_bytes(b"more of it")
    return {str(path): path.read_bytes() for path in Path("victim").rglob("*") if path.is_file()}


def by_name() -> None:
    changes("store", "../victim")


def by_path() -> None:
    changes("store", str(Path("victim").absolute()))


def by_link() -> None:
    shutil.move("run/store", "moved")
    Path("run/store").symlink_to("../victim")


def by_link_inside() -> None:
    Path("run/way").symlink_to("..")
    changes("store", "way/victim")


@pytest.mark.parametrize("lead", mostly_long([by_name, by_path, by_link, by_link_inside], now=[by_name, by_link]))
def test_a_manifest_leads_to_no_folder_outside_of_its_own(
    here: Path, capsys: pytest.CaptureFixture[str], lead: Callable[[], None]
) -> None:
    before = victim()
    lead()
    assert goes_on() == 2
    assert "the run in run has its store outside of its folder; if that is right, add --store" in one_message(capsys)
    assert goes_on("--store", "victim") == 2
    assert "is not empty and is no store (it has index); choose another store" in one_message(capsys)
    assert {str(path): path.read_bytes() for path in Path("victim").rglob("*") if path.is_file()} == before


def test_a_store_of_ones_own_files_is_refused_before_anything_is_written(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine/tensors").mkdir(parents=True)
    Path("mine/tensors/photo.png").write_bytes(b"a face")
    assert main(["run", "run/scenario.yaml", "--out", "new", "--store", "mine"]) == 2
    message = "mine is not empty and is no store (it has tensors); choose another store with --store, or another folder"
    assert one_message(capsys).startswith(message)
    assert [str(path) for path in Path("mine").rglob("*")] == ["mine/tensors", "mine/tensors/photo.png"]
    assert not Path("new").exists()


STORES: dict[str, tuple[object, str]] = {
    "half a character": ("\ud800", r"is not readable as a manifest \(its key 'store'\)"),
    "the folder itself": (".", r"run/?\.? is not empty and is no store"),
    "a file": ("scenario.yaml", "run/scenario.yaml is not a folder; choose another store"),
}


@pytest.mark.parametrize(("store", "message"), STORES.values(), ids=STORES)
def test_a_manifest_with_a_store_that_is_none(
    here: Path, capsys: pytest.CaptureFixture[str], store: object, message: str
) -> None:
    changes("store", store)
    assert goes_on() == 2
    assert re.search(message, one_message(capsys))


# -- what is no file --------------------------------------------------------------------------------------------------

NO_FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a pipe": ("tensors", os.mkfifo),
    "a folder": ("index", Path.mkdir),
    "a link": ("metrics", lambda path: path.symlink_to("/dev/zero")),
}


@pytest.mark.parametrize("said", NO_FILES)
def test_a_file_of_a_store_that_is_none(here: Path, capsys: pytest.CaptureFixture[str], said: str) -> None:
    kind, make = NO_FILES[said]
    path = stored(kind)
    path.unlink()
    make(path)
    assert goes_on("--quiet") == 2
    assert one_message(capsys).startswith(f"{path}: is {said}, and must be a regular file; put the file back")


# -- what is damaged --------------------------------------------------------------------------------------------------

DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "half an index": ("index", lambda content: content[: len(content) // 2]),
    "accuracy that is none": ("metrics", lambda content: content.replace(b'"accuracy":0.', b'"accuracy":NaN,"a":0.')),
    "half a tensor": ("tensors", lambda content: content[: len(content) // 2]),
    "a tensor of other numbers": ("tensors", lambda content: content[:-1] + bytes([content[-1] ^ 0x40])),
}


@pytest.mark.parametrize("said", DAMAGES)
def test_what_is_damaged_is_named_put_aside_and_computed_again(
    here: Path, capsys: pytest.CaptureFixture[str], said: str
) -> None:
    kind, damage = DAMAGES[said]
    path = stored(kind)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert path.read_bytes() != whole
    assert goes_on() == 0
    assert tables(Path("run")) == tables(Path("whole"))
    (remark,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Remark: run/store")]
    assert str(path) in remark and "is computed again" in remark
    (aside,) = Path("run/store/damaged").iterdir()
    assert aside.name == f"{path.name}.1"
    if kind != "metrics":
        assert aside.read_bytes() == damage(whole)


def tensors(**forged: np.ndarray) -> dict[str, np.ndarray]:
    """A linear model of the digits, but for what is *forged*."""
    sound = {"weight": np.zeros((10, 64), np.float32), "bias": np.zeros(10, np.float32)}
    return {f"fc.{name}": array for name, array in (sound | forged).items()}


NO_MODELS: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "another shape": (tensors(weight=np.zeros((64, 10), np.float32)), r"'fc.weight' is float32 \(64, 10\), and .*"),
    "another type": (
        tensors(bias=np.zeros(10, np.float64)),
        r"'fc.bias' is float64 \(10,\), and float32 \(10,\) is .*",
    ),
    "one tensor more": (tensors(more=np.zeros(1, np.float32)), "it has 3 tensors, and 2 are needed"),
    "another name": ({"a": np.zeros((10, 64), np.float32), "b": np.zeros(10)}, "it has no tensor 'fc.weight'"),
}


@pytest.mark.parametrize(("forged", "message"), NO_MODELS.values(), ids=NO_MODELS)
def test_tensors_that_fit_their_digest_and_are_of_no_such_model_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str], forged: dict[str, np.ndarray], message: str
) -> None:
    path = stored("tensors")
    content = b"".join(with_digest(path.stem, save(forged)))
    path.write_bytes(content)
    assert goes_on("--quiet") == 2
    said = one_message(capsys)
    assert re.match(rf"{path}: is not that part of the model \({message}\), and fits its digest all the same", said)
    assert said.endswith("choose another store with --store, or another folder with --out")
    assert path.read_bytes() == content


# -- what killed runs leave -------------------------------------------------------------------------------------------


def test_what_killed_runs_left_half_written_is_swept_and_nothing_else(here: Path) -> None:
    own = ["run/.manifest.json.7.tmp", "run/.rounds.csv.7.tmp", "run/store/index/.r.json.7.tmp"]
    other = ["run/.notes.txt.7.tmp", "run/.manifest.json.tmp", "run/store/index/.notes.txt.7.tmp"]
    for name in own + other:
        Path(name).write_text("half")
    assert goes_on() == 0
    assert [name for name in own + other if Path(name).exists()] == other


# -- final weights ----------------------------------------------------------------------------------------------------


def test_final_weights_are_as_they_were_written(here: Path) -> None:
    results = load_results("whole")
    (path,) = results.final_weights("fedavg", 1).values()
    content = path.read_bytes()
    for damaged in (content[:-1], content[:-1] + bytes([content[-1] ^ 1]), b""):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=f"{path.name}: .*digest; run the scenario again, into another folder"):
            results.final_weights("fedavg", 1)
    path.unlink()
    with pytest.raises(UserError, match=f"{path.name}: is lost; run the scenario again, into another folder"):
        results.final_weights("fedavg", 1)


@pytest.mark.parametrize("name", ["../manifest.json", "/etc/hostname", "tensors/mine.safetensors", ""])
def test_final_weights_are_a_stores_tensors(here: Path, name: str) -> None:
    path = Path("whole/manifest.json")
    manifest = json.loads(path.read_bytes())
    manifest["runs"][0]["final_weights"] = {"classifier": name}
    path.write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="is no name of weights in a store"):
        load_results("whole").final_weights("fedavg", 1)
