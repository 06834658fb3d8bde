"""The navigation of the site, taken from the lists of pages that readers of the repository see; there is no second one.

Each ``##`` section of docs/README.md is a part of the sidebar, with the pages that the section links, in that order. On
another index page (`INDEXES`) those are meant that are linked and lie in the index's own folder, or below. A page that
no list has is one that Sphinx warns of. The sidebar calls a page by its title, or by the text of the link where that
begins with a capital letter.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # so that tests of the lists need no Sphinx
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

ROOT = "docs/README"
INDEXES = (
    ROOT,
    "docs/api/README",
    "docs/data/README",
    "docs/protocols/README",
    "docs/recipes/README",
    "docs/reference/components",
)
SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<page>[^)#\s:]+)\.(?:md|ipynb)\)")


def add_toctrees(app: Sphinx, docname: str, content: list[str]) -> None:
    """Give an index page a hidden toctree for each of its lists."""
    if docname in INDEXES:
        content[0] += "".join(toctree(title, listed) for title, listed in parts(docname, content[0]))


def parts(docname: str, text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The lists on a page: the title of each, and its `pages`. No page is in two of them."""
    if docname != ROOT:
        yield "", {page: name for page, name in pages(text).items() if not page.startswith("..")}
        return
    seen: set[str] = set()
    _, *sections = SECTION.split(text)
    for title, section in zip(sections[::2], sections[1::2], strict=True):
        listed = {page: name for page, name in pages(section).items() if page not in seen}
        seen |= listed.keys()
        yield title, listed


def pages(text: str) -> dict[str, str]:
    """The pages that a text links, in the order of their first links, with what these links call them."""
    found: dict[str, str] = {}
    for match in LINK.finditer(text):
        found.setdefault(posixpath.normpath(match["page"]), match["text"])
    return found


def toctree(title: str, listed: dict[str, str]) -> str:
    """The directive that puts the pages of a list into the sidebar."""
    entries = [f"{name} <{page}>" if name[:1].isupper() else page for page, name in listed.items()]
    lines = [":hidden:", *([f":caption: {title}"] if title else []), "", *entries]
    return "\n```{toctree}\n" + "\n".join(lines) + "\n```\n" if listed else ""


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.connect("source-read", add_toctrees)
    return {"parallel_read_safe": True}
