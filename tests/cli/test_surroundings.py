"""What a command does when its surroundings are not what it is used to: streams, disks, homes, other runs."""

from __future__ import annotations

import configparser
import errno
import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from scenario_texts import write_scenario
from tiers import mostly_long

from fedsim.cli import main
from fedsim.cli.progress import progress
from fedsim.data import cache
from fedsim.data.raw_dataset import RawDataset
from fedsim.learning.executors.workers import Workers

Capture = pytest.CaptureFixture[str]


def console_script() -> str:
    """What the command `fedsim` calls once the package is installed."""
    settings = configparser.ConfigParser()
    settings.read(Path(__file__).parents[2] / "setup.cfg", "utf-8")
    return settings["options.entry_points"]["console_scripts"].split(" = ")[1]


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_scenario(tmp_path)


def fedsim_run(*words: str, out: str = "out") -> int:
    return main(["run", "scenario.yaml", "--out", out, "--no-training", *words])


def unfinished() -> None:
    path = Path("out/manifest.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "status": "running"}))


# -- a worker ---------------------------------------------------------------------------------------------------------


def test_a_run_whose_worker_is_killed_failed_and_says_how_to_go_on(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Workers.begin

    def killed(self: Workers, job: Any) -> Any:
        ticket = begin(self, job)
        for worker in self._hands:
            assert worker._pid is not None
            os.kill(worker._pid, signal.SIGKILL)
        return ticket

    words = ["run", "scenario.yaml", "--out", "out", "--executor", "processes", "--workers", "2", "--quiet"]
    with monkeypatch.context() as patch:
        patch.setattr(Workers, "begin", killed)
        assert main(words) == 1
    said = capsys.readouterr().err
    assert said.startswith("fedsim: the run failed (a worker process was killed, most likely because memory ran out; ")
    assert said.endswith(f"; go on with: fedsim {' '.join(words)} --resume\n") and said.count("\n") == 1
    assert main([*words, "--resume"]) == 0


# -- folders ----------------------------------------------------------------------------------------------------------


def test_a_finished_run_can_be_read_where_nothing_can_be_written(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fedsim_run("--quiet") == 0
    first = capsys.readouterr().out

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "out")

    for name in ("mkdir", "replace", "rename", "unlink"):
        monkeypatch.setattr(os, name, read_only)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert fedsim_run("--quiet") == 0
    assert main(["compare", "out"]) == 0
    assert capsys.readouterr().out == first * 2
    assert main(["plot", "out"]) == 2
    assert capsys.readouterr().err == ("fedsim: out cannot be written to; choose another folder with --out\n")


def test_a_folder_in_which_a_run_is_at_work_is_left_to_it(capsys: Capture) -> None:
    assert fedsim_run("--quiet") == 0
    unfinished()
    before = sorted((path.name, path.stat().st_mtime_ns) for path in Path("out").iterdir())
    capsys.readouterr()
    busy = "fedsim: another run is at work in out; wait for it"
    with FileLock("out/.lock"):
        for more in ([], ["--resume"]):
            assert fedsim_run("--quiet", *more) == 2
            assert capsys.readouterr().err == f"{busy}, or choose another folder with --out\n"
        for command in ("compare", "explain", "plot", "trace"):
            assert main([command, "out"]) == 2
            assert capsys.readouterr().err == f"{busy}\n"
    assert sorted((path.name, path.stat().st_mtime_ns) for path in Path("out").iterdir()) == before
    assert fedsim_run("--quiet") == 2
    assert "go on with --resume" in capsys.readouterr().err


NAMES = ["a b", "a\nb", "100%", os.fsdecode(b"\xff"), "[bold]"]


@pytest.mark.parametrize("name", mostly_long(NAMES, now=[NAMES[1], NAMES[3]]), ids=ascii)
def test_a_folder_may_have_any_name(name: str, capsys: Capture) -> None:
    assert fedsim_run(out=name) == 0
    assert main(["compare", name]) == 0
    assert "Traceback" not in capsys.readouterr().err


# -- quiet ------------------------------------------------------------------------------------------------------------


def test_quiet_is_quiet_even_where_there_is_something_to_remark(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedsim.cli.tables.remarks", lambda results: ["it got worse"])
    assert fedsim_run("--quiet") == fedsim_run("--quiet") == 0
    assert capsys.readouterr().err == ""
    assert fedsim_run() == 0
    assert "Remark: it got worse\n" in capsys.readouterr().err


def test_quiet_hides_what_libraries_warn_of(recwarn: pytest.WarningsRecorder) -> None:
    with progress(quiet=True):
        warnings.warn("of something", stacklevel=1)
    assert not recwarn.list


# -- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_does_not_need_a_reader_of_its_tables() -> None:
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": "/nowhere", "PYTHONUTF8": "0"}
    command = f"set -o pipefail; {sys.executable} -m fedsim run scenario.yaml --out out --no-training | true"
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr and "rror" not in done.stderr
    assert json.loads(Path("out/manifest.json").read_bytes())["status"] == "finished"


@pytest.mark.slow
def test_what_cannot_be_written_is_one_message() -> None:
    """Python does not complain at its end, too, of what it holds and cannot write."""
    line = f"{sys.executable} -m fedsim validate scenario.yaml > /dev/full"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "fedsim: No space left on device\n")


# -- interrupts -------------------------------------------------------------------------------------------------------

INTERRUPTED_AT = """
import os, signal, sys

class Interrupts:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts)
sys.argv = ["fedsim", "list", "profiles"]
{start}
"""
CONSOLE_SCRIPT = "import importlib\nsys.exit(getattr(importlib.import_module({!r}), {!r})())"
STARTS = {
    "python -m fedsim": "import runpy\nrunpy.run_module('fedsim', run_name='__main__')",
    "fedsim": CONSOLE_SCRIPT.format(*console_script().split(":")),
}


@pytest.mark.parametrize("module", ["fedsim.cli", "fedsim.cli.listing", "fedsim.radio.fixed"])
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_an_interrupt_while_modules_are_imported_ends_as_a_later_one(start: str, module: str) -> None:
    code = INTERRUPTED_AT.format(module=module, start=start)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fedsim: interrupted\n")


# -- homes ------------------------------------------------------------------------------------------------------------


def test_a_user_without_a_home_has_no_cache_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in (cache.VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    raw = a_raw_dataset()
    found = cache.cached("some", 1, [], {}, lambda: raw)
    assert found.x is raw.x
    assert found.remarks == (
        "not kept in a cache: this user has no home folder (HOME); FEDSIM_CACHE may name a folder",
    )


def a_raw_dataset() -> RawDataset:
    return RawDataset(x=np.zeros((1, 1)), y=np.zeros(1, np.int64), classes=1, sample_bytes=8.0)
