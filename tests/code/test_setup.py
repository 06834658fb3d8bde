"""Setting up is repeatable: all that an installation brings is pinned, and ``make`` tells what it can do."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems bring a few small packages of their own")
OF_A_CUDA_BUILD = ("cuda-", "nvidia-", "triton")  # torch itself fixes the versions of these


def pins(text: str | None = None) -> dict[str, Requirement]:
    lines = (text or (ROOT / "constraints.txt").read_text("utf-8")).splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(requirement.name): requirement for requirement in requirements}


def pins_of_only(target: str) -> dict[str, Requirement]:
    """Those of a part of constraints.txt, which ends at the next one or at the end."""
    text = (ROOT / "constraints.txt").read_text("utf-8")
    part = text.split(f"# What only `make {target}` installs")[1].partition("\n")[2]
    return pins(part.partition("# What only")[0])


def is_installed(distribution: str) -> bool:
    return any(True for _ in metadata.distributions(name=distribution))


def brought_by(distribution: str, extras: frozenset[str]) -> set[str]:
    """Names of everything that installing *distribution* with *extras* brings to this machine, itself left out."""
    found: set[str] = set()
    waiting = [(distribution, extras)]
    seen = set(waiting)
    while waiting:
        name, wanted = waiting.pop()
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in wanted | {""}):
                continue
            found.add(canonicalize_name(requirement.name))
            step = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if step not in seen and not step[0].startswith(OF_A_CUDA_BUILD):
                seen.add(step)
                waiting.append(step)
    return found - {distribution}


@on_linux
def test_everything_that_is_installed_is_pinned() -> None:
    brought = brought_by("fedsim-industrial", frozenset({"dev"}))
    assert {"simpy", "torch", "sympy", "pytest", "nbclient", "pyzmq"} <= brought
    assert sorted(name for name in brought - pins().keys() if not name.startswith(OF_A_CUDA_BUILD)) == []


def test_a_pin_is_one_public_version() -> None:
    loose = [str(pin) for pin in pins().values() if not re.fullmatch(r"==[0-9][0-9a-z.]*", str(pin.specifier))]
    assert loose == []


@on_linux
def test_nothing_is_pinned_that_is_not_installed() -> None:
    brought = brought_by("fedsim-industrial", frozenset({"dev"})) | {"setuptools"}  # what builds the package
    assert sorted(pins().keys() - brought - pins_of_only("lab").keys() - pins_of_only("test-long").keys()) == []


@pytest.mark.skipif(not is_installed("jupyterlab"), reason="`make lab` was not executed here")
def test_everything_that_make_lab_installs_is_pinned() -> None:
    brought = brought_by("fedsim-industrial", frozenset({"lab"}))
    assert sorted(name for name in brought - pins().keys() if not name.startswith(OF_A_CUDA_BUILD)) == []
    assert sorted(pins_of_only("lab").keys() - brought) == []


@on_linux
@pytest.mark.skipif(not is_installed("playwright"), reason="`make test-long` was not executed here")
def test_everything_that_make_test_long_installs_is_pinned() -> None:
    brought = brought_by("fedsim-industrial", frozenset({"long"}))
    assert sorted(name for name in brought - pins().keys() if not name.startswith(OF_A_CUDA_BUILD)) == []
    assert sorted(pins_of_only("test-long").keys() - brought) == []


@on_linux
def test_as_many_packages_are_announced_as_are_installed() -> None:
    announced = runpy.run_path(str(ROOT / ".ci/install.py"))["ADDED"]
    user, developer = (brought_by("fedsim-industrial", frozenset({extra})) for extra in ("kernels", "dev"))
    of_cuda = {name for name in developer if name.startswith(OF_A_CUDA_BUILD)}
    assert announced[""][0] == len((user - of_cuda) | {"setuptools", "fedsim-industrial"})
    assert announced["dev"][0] == len(developer - user)
    assert announced["long"][0] == len(pins_of_only("test-long"))


def test_where_pip_fails_its_last_lines_are_shown_whatever_bytes_they_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install = runpy.run_path(str(ROOT / ".ci/install.py"))["install"]
    monkeypatch.setitem(install.__globals__, "PIP", [sys.executable, "-c"])
    monkeypatch.setitem(install.__globals__, "PINNED", [])
    code = r"import sys; sys.stdout.buffer.write(b'Looking\n\nERROR: no \xff\n'); sys.exit(3)"
    assert install([code]) == 3
    assert capsys.readouterr().err == "pip could not install this:\n  Looking\n  ERROR: no \ufffd\n"


def test_the_torch_that_is_kept_is_the_one_that_is_pinned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main = runpy.run_path(str(ROOT / ".ci/install.py"))["main"]
    monkeypatch.setitem(main.__globals__, "PIP", [sys.executable, "-c", "raise SystemExit(1)"])
    assert main() == 1
    assert f"A torch {next(iter(pins()['torch'].specifier)).version} that" in capsys.readouterr().out


def test_a_folder_that_is_called_fedsim_does_not_hide_the_package(tmp_path: Path) -> None:
    (tmp_path / "fedsim" / "fedsim").mkdir(parents=True)  # what is beside a clone, and what Python is started beside
    words = [sys.executable, "-c", "import fedsim; print(fedsim.load.__module__)"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "fedsim.scenario.load\n", done.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_alone_lists_every_target_with_a_sentence() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^\.PHONY: (\S+)$", makefile, re.MULTILINE)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    printed = subprocess.run(["make"], cwd=ROOT, env=plain, capture_output=True, text=True, check=True).stdout
    assert targets
    assert re.findall(r"^  make (\S+) +[A-Z].*\.$", printed, re.MULTILINE) == targets
