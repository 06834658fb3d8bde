"""The pages are whole: links lead somewhere, generated parts are what the code says now, every page can be found."""

from __future__ import annotations

import os
import re
from pathlib import Path

import generate
import pytest
import sidebar
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


def test_every_page_and_notebook_is_in_one_list_of_pages() -> None:
    """In that of docs/README.md, or of another index; the site takes its sidebar from these lists."""
    listed = []
    for index in sidebar.INDEXES:
        for _, pages in sidebar.parts(index, (ROOT / f"{index}.md").read_text(encoding="utf-8")):
            listed += [os.path.normpath(os.path.join(os.path.dirname(index), page)) for page in pages]
    there = {*PAGES, ROOT / "CONTRIBUTING.md", *(ROOT / "notebooks").glob("*.ipynb")} - {ROOT / "docs/README.md"}
    names = {str(page.relative_to(ROOT).with_suffix("")) for page in there}
    assert sorted(names - set(listed)) == [], "in no list: add a row to docs/README.md, or to the index of its folder"
    assert sorted(listed) == sorted(names), "in two lists, or not there"
