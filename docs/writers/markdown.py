"""Markdown: tables, headings' addresses, and links between pages."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 120
WIDE = re.compile(rf"^(?![|#<!]).{{{COLUMNS + 1},}}$", re.MULTILINE)
FROM_ROOT = re.compile(r"(?<=\]\()/(?P<path>[^#)\s]+)(?P<anchor>#[^)\s]*)?(?=\))")


def table(titles: list[str], rows: Iterable[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def anchor(title: str) -> str:
    """The address of a heading inside its page, as GitHub makes it."""
    return re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-")


def relative(text: str, page: str) -> str:
    """*text* of a page, with links that begin at the root of the repository turned into links from that page.

    >>> relative("[a](/docs/a.md#b), [c](/docs/x/c.md#d)", "docs/x/c.md")
    '[a](../a.md#b), [c](#d)'
    """

    def from_page(match: re.Match[str]) -> str:
        heading = match["anchor"] or ""
        here = heading and match["path"] == page
        return heading if here else os.path.relpath(match["path"], Path(page).parent) + heading

    return FROM_ROOT.sub(from_page, text)


def wrapped(page: str) -> str:
    """The text of a *page* in lines of at most `COLUMNS`; tables, headings, blocks and comments stay as they are.

    >>> print(wrapped("# A title\\n\\n" + 30 * "word " + "\\n").count("\\n"))
    4
    """
    parts = re.split(r"(^```.*?^```$)", page, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else WIDE.sub(_folded, part) for part in parts)


def _folded(line: re.Match[str]) -> str:
    return "\n".join(textwrap.wrap(line[0], COLUMNS, break_long_words=False, break_on_hyphens=False))


def one_line(text: str) -> str:
    """A docstring as one line of Markdown."""
    return " ".join(text.replace("``", "`").split())


def in_words(names: Sequence[str]) -> str:
    """
    >>> in_words(["a"]), in_words(["a", "b", "c"])
    ('`a`', '`a`, `b` and `c`')
    """
    return listed(quoted(names))


def quoted(names: Sequence[str]) -> list[str]:
    return [f"`{name}`" for name in names]


def listed(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last
