"""The pages are whole: links lead somewhere, generated parts are what the code says now, every page can be found."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from pages import FENCED, PAGES, ROOT

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)|<img[^>]+src=\"(?P<image>[^\"]+)\"")
GENERATED = re.compile(r"<!-- generated.*?<!-- end of generated -->", re.DOTALL)
HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


def generator() -> ModuleType:
    """docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs/generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    return {generator_anchor(match["title"]) for match in HEADING.finditer(prose(page))}


def generator_anchor(title: str) -> str:
    """As GitHub does it: lower case, spaces to dashes, and nothing but letters, digits, dashes and underscores."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    lost = []
    for match in LINK.finditer(prose(page)):
        target = match["target"] or match["image"]
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_has_at_most_120_columns(page: Path) -> None:
    """Left out: what cannot be wrapped (blocks, tables, pictures), and what is written by a program."""
    if page.parent.name == "reference":
        return
    lines = GENERATED.sub("", prose(page)).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.lstrip().startswith(("|", "!["))] == []


def test_generated_parts_are_what_the_code_says_now() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in generator().pages().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make docs`"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    pages = [str(page.relative_to(ROOT / "docs")) for page in sorted((ROOT / "docs").rglob("*.md"))]
    assert [page for page in pages if page != "README.md" and f"]({page})" not in index] == []


def test_every_component_is_in_the_reference() -> None:
    from fedsim import registry

    reference = (ROOT / "docs/reference/components.md").read_text(encoding="utf-8")
    names = [name for kind in registry.KINDS for name in registry.names(kind)]
    assert [name for name in names if f"\n### `{name}`\n" not in reference] == []
