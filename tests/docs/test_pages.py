"""The pages are whole: links lead somewhere, generated parts are what the code says now, every page can be found."""

from __future__ import annotations

import re
from pathlib import Path

import generate
import pytest
from pages import FENCED, PAGES, ROOT

LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)|<img[^>]+src=\"(?P<image>[^\"]+)\"")
GENERATED = re.compile(r"<!-- generated.*?<!-- end of generated -->", re.DOTALL)
HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    return {as_address(match["title"]) for match in HEADING.finditer(prose(page))}


def as_address(title: str) -> str:
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
    """Left out: what cannot be wrapped (blocks, tables, pictures), and generated parts of pages."""
    lines = GENERATED.sub("", prose(page)).splitlines()
    assert [line for line in lines if len(line) > 120 and not line.lstrip().startswith(("|", "!["))] == []


def test_generated_parts_are_what_the_code_says_now() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in generate.pages().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make docs`"


def test_every_page_is_in_the_index() -> None:
    """In that of all pages; the pages of components are in the index of their own."""
    listed = set()
    for index in (ROOT / "docs/README.md", ROOT / "docs/reference/components.md"):
        targets = (match["target"] or "" for match in LINK.finditer(index.read_text(encoding="utf-8")))
        listed |= {(index.parent / target.partition("#")[0]).resolve() for target in targets}
    pages = set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs/README.md"}
    assert sorted(pages - listed) == []
