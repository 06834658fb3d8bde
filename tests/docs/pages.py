"""The pages of this repository, and what stands between their fences."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "scenarios/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCED = re.compile(r"^```(?P<language>[\w{}-]*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)


def fenced(page: Path, language: str) -> list[str]:
    """The contents of all fenced blocks of *language* on a page."""
    text = page.read_text(encoding="utf-8")
    return [match["content"] for match in FENCED.finditer(text) if match["language"] == language]


def files(page: Path) -> dict[str, str]:
    """The files on a page, by name: that of the first file which the paragraph before a block names."""
    text, found = page.read_text(encoding="utf-8"), {}
    for match in FENCED.finditer(text):
        named = re.findall(r"`(\w+\.(?:py|yaml))`", text[: match.start()].rstrip().rpartition("\n\n")[2])
        if named and match["language"] in ("python", "yaml"):
            found[named[0]] = match["content"]
    return found


def columns(table: str) -> dict[str, list[str]]:
    """The first of printed tables, by its columns."""
    header, _, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.partition("\n\n")[0].splitlines()
    )
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
