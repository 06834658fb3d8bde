"""What docs/add_a_protocol.md promises: the file on the page and one registry line are a protocol."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, fenced

PAGE = ROOT / "docs/add_a_protocol.md"
REGISTERED = """
import sys
from fedsim import protocols
protocols.REGISTRY["richest"] = "richest:Richest"
from fedsim.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "richest.py").write_text(fenced(PAGE, "python")[0], encoding="utf-8")
    return tmp_path


def fedsim(module: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line with the page's file in the registry."""
    command = [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(module)!r})\n{REGISTERED}", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def the_command() -> list[str]:
    [command] = [text for text in fenced(PAGE, "text") if text.startswith("fedsim run")]
    return shlex.split(command.replace("\\\n", " "))[1:]


def columns(table: str) -> dict[str, list[str]]:
    """A printed table by its columns."""
    header, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines())
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


@pytest.mark.slow
def test_the_command_on_the_page_costs_what_the_page_says(module: Path) -> None:
    words = the_command()
    words[words.index("--out") + 1] = str(module / "run")
    done = fedsim(module, *words, "--no-training")  # which leaves accuracy and loss out, and changes nothing else
    assert done.returncode == 0, done.stderr
    costs = columns(done.stdout)
    on_the_page = columns(next(text for text in fenced(PAGE, "text") if text.startswith("| protocol")))
    assert costs["protocol"] == ["fedavg", "richest"]
    assert on_the_page.keys() - costs.keys() == {"accuracy", "loss"}
    assert costs == {name: on_the_page[name] for name in costs}


@pytest.mark.long
def test_it_trains(module: Path) -> None:
    words = the_command()
    words[words.index("--out") + 1] = str(module / "run")
    done = fedsim(module, *words, "--set", "stop.rounds=2")
    assert done.returncode == 0, done.stderr
    assert all(float(accuracy) > 0 for accuracy in columns(done.stdout)["accuracy"])


@pytest.mark.slow
def test_its_keys_are_checked(module: Path) -> None:
    done = fedsim(module, "validate", "scenarios/quickstart.yaml", "--set", "protocols=[{name: richest, clients: 81}]")
    assert (done.returncode, done.stdout) == (2, "")
    assert "protocols[0].clients: 81 must be at most 80" in done.stderr


def test_the_listing_shows_its_first_sentence(module: Path) -> None:
    listed = fedsim(module, "list", "protocols").stdout
    assert "richest The clients with the most samples train in parallel" in " ".join(listed.split())


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
