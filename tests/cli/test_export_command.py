"""``fedsim export``: where it puts what, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from exported import finished_run
from refusals import Refusals

from fedsim import registry
from fedsim.cli import main

TOOLS = ("tensorboard", "mlflow", "parquet")
WITHOUT_MLFLOW = pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed")
WARNS = pytest.mark.filterwarnings("ignore")  # mlflow uses what SQLAlchemy has deprecated
INSTALLED = ["tensorboard", pytest.param("mlflow", marks=[WITHOUT_MLFLOW, WARNS]), "parquet"]
AGAIN = "run the scenario again, into another folder"


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture
def finished(refused: Refusals) -> Refusals:
    """There is a finished run in runs/plant."""
    finished_run(refused.folder / "runs/plant", name="plant")
    return refused


def export(*words: str, to: str = "parquet") -> tuple[str, ...]:
    return ("export", *words, "--to", to)


def test_the_export_goes_into_the_run_folder_or_where_it_is_told_and_is_named(
    finished: Refusals, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(export("runs/plant")) == main(export("runs/plant", "--out", "out/tables")) == 0
    assert capsys.readouterr().out == "runs/plant/exports/parquet\nout/tables\n"
    assert (
        Path("runs/plant/exports/parquet/rounds.parquet").read_bytes() == Path("out/tables/rounds.parquet").read_bytes()
    )
    assert main(["compare", "runs/plant"]) == 0  # and is still a run


def test_every_tool_is_listed_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "exporters"]) == 0
    listed = capsys.readouterr().out
    for kind, name in (("exporters", "tensorboard"), ("exporters", "mlflow"), ("exporters", "parquet")):
        assert registry.first_sentence(kind, name) in listed
    assert registry.names("exporters") == TOOLS


def test_a_tool_that_is_not_there(finished: Refusals) -> None:
    message = "exporters has no 'tensorbord'; did you mean 'tensorboard'? (known: tensorboard, mlflow, parquet)"
    finished.check(*export("runs/plant", to="tensorbord"), message=message)


@pytest.mark.parametrize("tool", TOOLS)
def test_no_finished_run(finished: Refusals, tool: str) -> None:
    finished.check(
        *export("runs/plan", to=tool), message="there is no run folder runs/plan; did you mean 'runs/plant'?"
    )
    finished.check(*export("runs", to=tool), message="runs is no run folder: it has no manifest.json")
    path = finished.folder / "runs/plant/manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "status": "running"}), "utf-8")
    command = "fedsim run runs/plant/scenario.yaml --out runs/plant --resume"
    finished.check(
        *export("runs/plant", to=tool), message=f"the run in runs/plant is not finished; go on with: {command}"
    )
    path.write_text("{", "utf-8")
    finished.check(
        *export("runs/plant", to=tool), message=f"runs/plant/manifest.json is not readable as a manifest; {AGAIN}"
    )


@pytest.mark.parametrize("tool", INSTALLED)
@pytest.mark.parametrize("file", ["rounds.parquet", "summary.csv", "scenario.yaml"])
def test_a_run_that_has_lost_or_half_lost_a_file(finished: Refusals, tool: str, file: str) -> None:
    path = finished.folder / "runs/plant" / file
    path.write_bytes(path.read_bytes()[:-9] if file != "scenario.yaml" else b"\xff")
    if file == "scenario.yaml":
        message = "runs/plant/scenario.yaml:1: is not UTF-8 text (byte 0xff); save the file as UTF-8"
    else:
        message = f"runs/plant/{file} is no table of a run (...); {AGAIN}"
    finished.check(*export("runs/plant", to=tool), message=message)
    path.unlink()
    finished.check(*export("runs/plant", to=tool), message=f"runs/plant has lost its {file}; {AGAIN}")


@pytest.mark.parametrize("tool", INSTALLED)
def test_a_run_that_has_lost_where_its_time_went(finished: Refusals, tool: str) -> None:
    folder = finished.folder / "runs/plant"
    (folder / "stragglers.csv").write_text("")  # a run has all four of these tables, or none
    finished.check(*export("runs/plant", to=tool), message=f"runs/plant has lost its critical_path.csv; {AGAIN}")


def test_several_runs_need_a_folder(finished: Refusals) -> None:
    finished_run(finished.folder / "runs/other", name="other")
    message = "several run folders go into one export: say where to put it with --out DIR"
    finished.check(*export("runs/plant", "runs/other"), message=message)
    finished.check(
        *export("runs/plant", "runs/../runs/plant", "--out", "out"),
        message="runs/plant is named twice, and its seeds would count twice: name it once",
    )


def test_a_place_that_is_not_an_exports(finished: Refusals) -> None:
    (finished.folder / "file").write_text("")
    elsewhere = "choose another folder with --out"
    finished.check(*export("runs/plant", "--out", "file"), message=f"file is not a folder; {elsewhere}")
    message = f"runs is not empty and is no export (it has plant/manifest.json); {elsewhere}"
    finished.check(*export("runs/plant", "--out", "runs"), message=message)
    message = f"runs/plant is not empty and is no export (it has manifest.json); {elsewhere}"
    finished.check(*export("runs/plant", "--out", "runs/plant"), message=message)


def test_a_place_inside_a_run_or_around_the_reader(finished: Refusals, monkeypatch: pytest.MonkeyPatch) -> None:
    finished_run(finished.folder / "runs/other", name="other")
    way_out = "choose another folder with --out, or one in runs/plant/exports"
    for place in ("runs/plant/tables", "runs/other/../plant/exports", "runs/plant/store/tables"):
        message = f"{place} is inside the run runs/plant; {way_out}"
        finished.check(*export("runs/other", "runs/plant", "--out", place), message=message)
    assert main(export("runs/plant", "--out", "runs/plant/exports/mine")) == 0
    run = finished.folder / "runs/plant"
    (finished.folder / "empty/inner").mkdir(parents=True)
    monkeypatch.chdir(finished.folder / "empty/inner")
    for place in (".", "..", "../inner"):
        message = f"{place} is the folder in which you are, and an export replaces a folder; ..."
        finished.check(*export(str(run), "--out", place), message=message)


def test_a_tracking_server_is_for_mlflow_and_instead_of_a_folder(finished: Refusals) -> None:
    server = ("--tracking-uri", "http://127.0.0.1:1")
    message = "a tracking server is for mlflow, and not for parquet; leave --tracking-uri out"
    finished.check(*export("runs/plant", *server), message=message)
    message = "--out is for a folder, and --tracking-uri for a server or a database: leave one of them out"
    finished.check(*export("runs/plant", *server, "--out", "out", to="mlflow"), message=message)


def test_a_library_that_is_not_installed_is_named(finished: Refusals, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("tensorboard", "mlflow"):
        monkeypatch.setitem(sys.modules, library, None)
    message = "--to tensorboard needs the library tensorboard; install it: pip install 'tensorboard>=2.20'"
    finished.check(*export("runs/plant", to="tensorboard"), message=message)
    install = "pip install 'mlflow-skinny>=3.10' SQLAlchemy alembic"
    message = f"--to mlflow needs the library mlflow; install it: {install}"
    finished.check(*export("runs/plant", to="mlflow"), message=message)
    finished.check(*export("runs/plant", "--tracking-uri", "sqlite:///ours.db", to="mlflow"), message=message)


@pytest.mark.parametrize("tool", ["tensorboard", "parquet"])
def test_an_export_loads_no_library_of_training_or_drawing(finished: Refusals, tool: str) -> None:
    code = (
        "import sys; from fedsim.cli import main; assert main(sys.argv[1:]) == 0\n"
        "print(*{'torch', 'tensorflow', 'matplotlib', 'ortools'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, *export("runs/plant", to=tool)], capture_output=True, text=True)
    assert done.stdout.split() == [f"runs/plant/exports/{tool}"], done.stderr
