"""A run folder that was cut off, changed by hand or stuffed with something else: one message, and nothing is lost."""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from small_worlds import scenario
from tiers import mostly_long
from tiny_results import counted

from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.experiment.results import Results, load_results
from fedsim.experiment.run import run

AGAIN = "; run the scenario again, into another folder"
TABLES = {"rounds.parquet": "rounds", "summary.csv": "summary", "links.csv": "links", "transfers.parquet": "transfers"}
TIMES = {
    "critical_path.csv": "critical_path",
    "critical_pieces.parquet": "critical_pieces",
    "stragglers.csv": "stragglers",
    "link_loads.csv": "link_loads",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    return run(scenario({"seeds": [1, 2]}), out=tmp_path_factory.mktemp("whole") / "run").folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, called ``run`` and next to nothing else."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(whole, "run")
    return Path("run")


def everything_in(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What is there, and when files were changed; that of folders changes when one tries whether they can be."""
    found = {str(path): path.lstat() for path in sorted(folder.rglob("*"))}
    changed = {path: 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns for path, status in found.items()}
    return {path: (status.st_mode, status.st_size, changed[path]) for path, status in found.items()}


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command is refused with, which changes nothing."""
    before = everything_in(Path())
    capsys.readouterr()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("fedsim: ") and said.count("\n") == 1 and said[:-1].isprintable() and len(said) < 1_000
    assert everything_in(Path()) == before
    return said.removeprefix("fedsim: ").removesuffix("\n")


def test_a_whole_folder_is_read(folder: Path) -> None:
    results = load_results(folder)
    assert [len(getattr(results, table)) for table in TABLES.values()] == [2, 2, 8, 16]


# -- the manifest -----------------------------------------------------------------------------------------------------


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


MANIFESTS: dict[str, tuple[bytes | Callable[[Path], None], str]] = {
    "half": (b'{"status": "fini', "run/manifest.json is not readable as a manifest" + AGAIN),
    "brackets": (b"[" * 100_000, "run/manifest.json is not readable as a manifest" + AGAIN),
    "a pipe": (a_pipe, "run/manifest.json: is a pipe, and a manifest must be a regular file; save its content in one"),
}


@pytest.mark.parametrize("said", MANIFESTS)
def test_a_manifest_that_is_none(said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, message = MANIFESTS[said]
    path = folder / "manifest.json"
    path.unlink()
    if callable(content):
        content(path)
    else:
        path.write_bytes(content)
    again = ["run", "run/scenario.yaml", "--out", "run"]
    for words in (["compare", "run"], ["plot", "run"], again, [*again, "--resume"]):
        assert refusal(words, capsys) == message


KEYS: dict[str, tuple[str, object]] = {
    "no scenario": ("scenario", None),
    "a scenario with a terminal escape": ("scenario", "\x1b[2J"),
    "another status": ("status", "done"),
    "a run that leads elsewhere": ("run", "../../elsewhere"),
    "endless seconds": ("real_seconds", math.inf),
    "runs without a seed": ("runs", [{"protocol": "fedavg"}]),
}


@pytest.mark.parametrize("said", KEYS)
def test_a_manifest_with_something_else_in_it(said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, value = KEYS[said]
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "status": "running", key: value}))
    message = f"run/manifest.json is not readable as a manifest (its key '{key}"
    for words in (["compare", "run"], ["run", "run/scenario.yaml", "--out", "run", "--resume"]):
        assert refusal(words, capsys).startswith(message)


@pytest.mark.parametrize("key", ["run", "store"])
def test_a_manifest_that_lacks_what_can_be_done_without(key: str, folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest[key]
    path.write_text(json.dumps({**manifest, "status": "running"}))
    assert run(scenario({"seeds": [1, 2]}), out=folder, resume=True).manifest["status"] == "finished"


@pytest.mark.parametrize(
    "make",
    [a_folder, a_pipe, a_link_to("/dev/zero"), a_link_to("scenario.yaml")],
    ids=["folder", "pipe", "zero", "loop"],
)
def test_a_scenario_that_is_no_file(
    make: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "scenario.yaml").rename("mine.yaml")
    make(folder / "scenario.yaml")
    told = (
        "run holds the run of a different scenario (its scenario.yaml is not one that this version reads); "
        "choose another folder with --out"
    )
    for more in ([], ["--resume"]):
        assert refusal(["run", "mine.yaml", "--out", "run", *more], capsys) == told


# -- tables -----------------------------------------------------------------------------------------------------------

CUT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "text": lambda content: b"hello\nworld, this is\nno, table, at all\n",
    "quotes": lambda content: b'"' * 100_001,
    "a line end": lambda content: b"\n",
}


OWN_WORDS = (
    "it is empty|the last line has no end|it is no CSV file, with as many cells in each line|"
    "it is cut off, or no Parquet file|no column protocol"
)
SOME = [
    ("rounds.parquet", "half"),
    ("rounds.parquet", "empty"),
    ("summary.csv", "empty"),
    ("summary.csv", "text"),
    ("summary.csv", "a line end"),
    ("links.csv", "quotes"),
]


@pytest.mark.parametrize(("name", "said"), mostly_long(product(TABLES, CUT), now=SOME))
def test_a_table_that_is_none(name: str, said: str, folder: Path) -> None:
    path = folder / name
    path.write_bytes(CUT[said](path.read_bytes()))
    with pytest.raises(UserError, match=rf"^run/{name} is no table of a run \(({OWN_WORDS})\){AGAIN}$") as refused:
        getattr(Results(folder), TABLES[name])
    assert str(refused.value).isprintable() and len(str(refused.value)) < 300


@pytest.mark.parametrize("make", [a_folder, a_pipe, a_link_to("/dev/zero"), a_link_to("summary.csv")])
def test_a_table_that_is_no_file(
    make: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "summary.csv").unlink()
    make(folder / "summary.csv")
    for words in (["compare", "run"], ["plot", "run"], ["run", "run/scenario.yaml", "--out", "run"]):
        assert refusal(words, capsys) == f"run has lost its summary.csv{AGAIN}"


SPOILT: dict[str, tuple[str, Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "no rows": ("summary.csv", lambda table: table[:0], "no rows"),
    "no protocol": ("summary.csv", lambda table: table.drop(columns="protocol"), "no column protocol"),
    "a terminal escape": ("summary.csv", lambda table: table.assign(protocol="\x1b[2J"), r"protocol='\x1b[2J'"),
    "another direction": ("links.csv", lambda table: table.assign(direction="up"), "direction='up'"),
    "words for bytes": ("summary.csv", lambda table: table.assign(uplink_bytes="many"), "uplink_bytes is no number"),
    "endless time": (
        "rounds.parquet",
        lambda table: table.assign(sim_time_s=math.inf),
        "sim_time_s is below 0 or infinite",
    ),
    "a row that is missing": ("links.csv", lambda table: table[:-1], "rows are missing, or stand twice"),
    "a round that stands twice": ("rounds.parquet", lambda table: pd.concat([table, table[-1:]]), "rows stand twice"),
    "a run that stands twice": ("summary.csv", lambda table: pd.concat([table, table[:1]]), "rows stand twice"),
    "a round's time that stands twice": (
        "critical_path.csv",
        lambda table: pd.concat([table, table[:1]]),
        "rows stand twice",
    ),
    "a client that stands twice": ("stragglers.csv", lambda table: pd.concat([table, table[:1]]), "rows stand twice"),
    "a path of nobody": ("critical_path.csv", lambda table: table.assign(protocol="nobody"), "protocol='nobody'"),
    "pieces of nobody": ("critical_pieces.parquet", lambda table: table.assign(protocol="nobody"), "protocol='nobody'"),
    "stragglers of nobody": ("stragglers.csv", lambda table: table.assign(protocol="nobody"), "protocol='nobody'"),
    "loads of a seed that was not run": (
        "link_loads.csv",
        lambda table: table.assign(seed=7),
        "protocol='fedavg', seed=7",
    ),
}


@pytest.mark.parametrize("said", SPOILT)
def test_a_table_of_something_else(said: str, folder: Path) -> None:
    name, spoil, reason = SPOILT[said]
    table: pd.DataFrame = spoil(getattr(load_results(folder), (TABLES | TIMES)[name]))
    if name.endswith(".csv"):
        table.to_csv(folder / name, index=False)
    else:
        table.to_parquet(folder / name, index=False)
    with pytest.raises(UserError) as refused:
        getattr(Results(folder), (TABLES | TIMES)[name])
    assert str(refused.value) == f"run/{name} is no table of a run ({reason}){AGAIN}"


def test_what_no_run_knows_is_a_number_all_the_same(folder: Path) -> None:
    rounds = load_results(folder).rounds.assign(accuracy=None, energy_j=None)
    rounds.to_parquet(folder / "rounds.parquet")
    found = load_results(folder).rounds
    assert found["accuracy"].dtype == found["energy_j"].dtype == float
    assert bool(found["accuracy"].isna().all())


def test_a_run_in_which_no_round_ended_has_no_rounds(tmp_path: Path) -> None:
    results = run(scenario({"stop": {"sim_time_s": 1.0}}), out=tmp_path / "run")
    assert load_results(results.folder).rounds.empty
    assert len(load_results(results.folder).summary) == 1


def test_a_link_to_itself_is_not_taken_for_another_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("ruin").symlink_to("ruin")
    assert refusal(["compare", "ruin"], capsys) == "there is no run folder ruin; did you mean 'run'?"


# -- what is not a run's is never overwritten -------------------------------------------------------------------------


def test_a_scenario_of_ones_own_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = Path("study") / "scenario.yaml"
    own.parent.mkdir()
    own.write_text("# my remarks\n" + (folder / "scenario.yaml").read_text())
    message = "study is not empty and is no run folder (it has scenario.yaml); choose another with --out"
    assert refusal(["run", str(own), "--out", "study"], capsys) == message


def test_tables_without_a_manifest_are_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "manifest.json").unlink()
    words = ["run", "run/scenario.yaml", "--out", "run", "--resume"]
    assert refusal(words, capsys).startswith("run is not empty and is no run folder (it has ")


def test_a_run_that_was_killed_before_it_had_a_manifest_begins_anew(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    shutil.copy(whole / "scenario.yaml", tmp_path / "run")
    (tmp_path / "run" / ".lock").touch()
    assert run(scenario({"seeds": [1, 2]}), out=tmp_path / "run").manifest["status"] == "finished"


def of_sensors(*names: str) -> dict[str, Any]:
    nodes: dict[str, Any] = {"cloud": {"kind": "cloud"}, "mast": {"kind": "base_station"}}
    nodes |= {name: {"kind": "sensor", "attach": "mast"} for name in names}
    return {"topology": {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "mast"]}]}}


def test_sensors_in_another_order_are_another_scenario(tmp_path: Path) -> None:
    run(scenario(of_sensors("a", "b")), out=tmp_path / "run")
    with pytest.raises(UserError, match=r"a different scenario \(topology\.nodes stands in another order there\)"):
        run(scenario(of_sensors("b", "a")), out=tmp_path / "run")


def test_chosen_metrics_of_a_model_that_diverged_are_read(folder: Path) -> None:
    table = load_results(folder).rounds.assign(rmse_cycles=math.inf, phm08_unseen=math.inf, recall_own=math.nan)
    table.to_parquet(folder / "rounds.parquet", index=False)
    assert (Results(folder).rounds["rmse_cycles"] == math.inf).all()


def test_damaged_counts_are_told_before_anything_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    COUNTS.assign(count=-1).to_csv(folder / "confusion.csv", index=False)
    assert refusal(["compare", "run"], capsys).startswith("run/confusion.csv is no table of a run")
    assert not capsys.readouterr().out


COUNTS = pd.concat([counted("fedavg", seed, [[3, 1], [0, 2]], ("NA", "007")) for seed in (1, 2)], ignore_index=True)


def test_counts_are_read_as_they_were_written(folder: Path) -> None:
    """Classes called as numbers, or as nothing, stay words."""
    with pytest.raises(UserError, match=r"confusion\.csv was not written: no model was scored on at most 256 classes"):
        _ = Results(folder).confusion
    COUNTS.to_csv(folder / "confusion.csv", index=False)
    assert Results(folder).confusion.to_dict("list") == COUNTS.to_dict("list")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"count": 1.5}, "count is no whole number"),
        ({"predicted_index": -1}, "predicted_index is below 0"),
        ({"test_set": "mine"}, "test_set='mine'"),
        ({"true": "a\nb"}, "true="),
        ({"predicted": None}, "predicted="),
    ],
)
def test_counts_that_are_none_are_refused(folder: Path, changes: dict[str, object], reason: str) -> None:
    COUNTS.assign(**changes).to_csv(folder / "confusion.csv", index=False)
    with pytest.raises(UserError) as refused:
        _ = Results(folder).confusion
    assert str(refused.value).startswith(f"run/confusion.csv is no table of a run ({reason}")
