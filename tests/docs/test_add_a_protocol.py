"""What docs/add_a_protocol.md promises: the file on the page and one registry line are a protocol."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from pages import ROOT, columns, fenced

PAGE = ROOT / "docs/add_a_protocol.md"
REGISTERED = """
import contextlib, io, json, sys
sys.path.insert(0, sys.argv[1])
from fedsim import protocols
protocols.REGISTRY["richest"] = "richest:Richest"
from fedsim.cli import main
said = []
for words in json.loads(sys.argv[2]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = main(words)
    said.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "richest.py").write_text(fenced(PAGE, "python")[0], encoding="utf-8")
    return folder


class Said(NamedTuple):
    status: int
    out: str
    err: str


def fedsim(module: Path, *commands: list[str]) -> list[Said]:
    """What some commands say in one process with the page's file in the registry."""
    words = [sys.executable, "-c", REGISTERED, str(module), json.dumps(commands)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [Said(*one) for one in json.loads(done.stdout)]


WRONG = ["validate", "scenarios/digits.yaml", "--set", "protocols=[{name: richest, clients: 81}]"]
LISTED = ["list", "protocols"]


@pytest.fixture(scope="module")
def said(module: Path) -> dict[str, Said]:
    """Without training, which leaves accuracy and loss out, and changes nothing else."""
    run = [*the_command(module), "--no-training"]
    return dict(zip(("wrong", "listed", "run"), fedsim(module, WRONG, LISTED, run), strict=True))


def the_command(module: Path) -> list[str]:
    """The one on the page, into a folder of ours."""
    [command] = [text for text in fenced(PAGE, "text") if text.startswith("fedsim run")]
    words = shlex.split(command.replace("\\\n", " "))[1:]
    words[words.index("--out") + 1] = str(module / "run")
    return words


@pytest.mark.slow
def test_the_command_on_the_page_costs_what_the_page_says(said: dict[str, Said]) -> None:
    assert said["run"].status == 0, said["run"].err
    costs = columns(said["run"].out)
    on_the_page = columns(next(text for text in fenced(PAGE, "text") if text.startswith("| protocol")))
    assert costs["protocol"] == ["fedavg", "richest"]
    assert on_the_page.keys() - costs.keys() == {"accuracy", "loss"}
    assert costs == {name: on_the_page[name] for name in costs}


@pytest.mark.long
def test_it_trains(module: Path) -> None:
    words = the_command(module)
    words[words.index("--out") + 1] = str(module / "trained")
    [done] = fedsim(module, [*words, "--set", "stop.rounds=2"])
    assert done.status == 0, done.err
    assert all(float(accuracy) > 0 for accuracy in columns(done.out)["accuracy"])


@pytest.mark.slow
def test_its_keys_are_checked(said: dict[str, Said]) -> None:
    assert (said["wrong"].status, said["wrong"].out) == (2, "")
    assert "protocols[0].clients: 81 must be at most 80" in said["wrong"].err


@pytest.mark.slow
def test_the_listing_shows_its_first_sentence(said: dict[str, Said]) -> None:
    assert "richest The clients with the most samples train in parallel" in " ".join(said["listed"].out.split())


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(["mypy", "--follow-imports=silent"], marks=pytest.mark.long),  # reads half of the package
        ["ruff", "check", "--config", "pyproject.toml"],
        ["ruff", "format", "--check", "--config", "pyproject.toml"],
    ],
    ids=" ".join,
)
def test_the_page_is_typed_strictly_and_in_the_one_style(module: Path, tool: list[str]) -> None:
    command = [sys.executable, "-m", *tool, str(module / "richest.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
