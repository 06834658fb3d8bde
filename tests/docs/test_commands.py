"""The commands on the pages can be given as they stand, one after the other, in one folder."""

from __future__ import annotations

import argparse
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest
from pages import PAGES, ROOT, fenced

from fedsim import cli

HISTORY = {"CHANGELOG.md"}
READ = [page for page in PAGES if page.name not in HISTORY and "reference" not in page.parts]
PLACES = re.compile(r"[A-Z]{2,}|<|\.\.\.|\$\{")  # SCENARIO.yaml, RUN_DIR, a loop of the shell: stand for something


def commands(page: Path) -> list[list[str]]:
    """The words of each command on a page, without ``fedsim``."""
    blocks = [*fenced(page, "text"), *fenced(page, "console")]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines = [line.removeprefix("$ ").removeprefix("FEDSIM_DATA=... ") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in lines if re.match(r"fedsim [a-z]", line)]


ALL = [
    pytest.param(page, words, id=f"{page.relative_to(ROOT)}: {' '.join(words)}"[:120])
    for page in READ
    for words in commands(page)
    if not any(map(PLACES.search, words))
]


def parsed(words: list[str]) -> argparse.Namespace:
    parser, _ = cli._parser()
    arguments, unknown = parser.parse_known_args(words)
    assert not unknown
    return arguments


def out(arguments: argparse.Namespace) -> str | None:
    """The folder that `fedsim run` or `fedsim retime` makes."""
    if arguments.command == "retime":
        return str(arguments.out)
    if arguments.command != "run":
        return None
    return str(arguments.out or f"runs/{arguments.scenario.stem.replace('_', '-')}")


@pytest.mark.parametrize(("page", "words"), ALL)
def test_a_command_is_one_and_its_scenario_is_there(page: Path, words: list[str]) -> None:
    arguments = parsed(words)
    if "scenario" in arguments and arguments.scenario.parts[0] == "scenarios":
        assert (ROOT / arguments.scenario).is_file()


def test_no_two_commands_have_one_folder_for_different_runs() -> None:
    runs: dict[str, set[str]] = defaultdict(set)
    for case in ALL:
        page, words = case.values
        arguments = parsed(words)
        if (folder := out(arguments)) is not None and "--resume" not in words:
            is_shipped = "scenario" in arguments and arguments.scenario.parts[0] == "scenarios"
            where = "" if is_shipped else f"{page.name}: "
            runs[folder].add(where + " ".join(words))
    assert {folder: sorted(different) for folder, different in runs.items() if len(different) > 1} == {}


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_folder_that_is_read_was_made_before(page: Path) -> None:
    made = {"runs/quickstart"}  # by `make demo`
    for words in commands(page):
        if any(map(PLACES.search, words)):
            continue
        arguments = parsed(words)
        made |= {out(arguments) or ""}
        single = [getattr(arguments, name, None) for name in ("run", "folder")]
        read = [*getattr(arguments, "folders", []), *filter(None, single)]
        assert {str(folder) for folder in read if folder.parts[0] == "runs"} <= made
