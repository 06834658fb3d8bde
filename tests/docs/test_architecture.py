"""The page that leads through the code: what it names is there, and what is there has its place on it."""

from __future__ import annotations

import re
from configparser import ConfigParser

import pytest
from pages import ROOT

from fedsim import registry

PAGE = ROOT / "docs/architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")
QUOTED = re.findall(r"`([^`\n]+)`", TEXT)
PATHS = sorted({name for name in QUOTED if name.startswith(("fedsim/", "tests/", "docs/", "scenarios/", "setup."))})
MOST_LINES = 200


def layers() -> list[list[str]]:
    """Those that import-linter checks, from the top, as far as they are there."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    written = config["importlinter:contract:layers"]["layers"].strip().splitlines()
    names = [re.findall(r"\w+", line) for line in written]
    there = [[name for name in line if list((ROOT / "fedsim").glob(f"{name}*"))] for line in names]
    return [line for line in there if line and line != ["__main__"]]


def test_the_page_names_the_way_through_the_code() -> None:
    assert len(PATHS) > 60
    assert len(TEXT.splitlines()) <= MOST_LINES


@pytest.mark.parametrize("path", PATHS)
def test_what_the_page_names_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_its_layers_are_those_that_are_checked() -> None:
    rows: dict[int, list[str]] = {}
    for number, names in re.findall(r"^\| (\d+) \| ([^|]+) \|", TEXT, re.MULTILINE):
        rows.setdefault(int(number), []).extend(re.findall(r"fedsim/(\w+)", names))
    assert [sorted(rows[number]) for number in sorted(rows)] == [sorted(line) for line in layers()]


def test_every_kind_of_component_has_its_registry_on_the_page() -> None:
    homes = {package.replace(".", "/") for package in registry.KINDS.values()}
    assert [home for home in sorted(homes) if f"`{home}.py`" not in TEXT and f"`{home}/__init__.py`" not in TEXT] == []
