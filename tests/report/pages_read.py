"""A page as its reader has it: parsed, not searched."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

__all__ = ["Page"]

_VOID = frozenset(("meta", "link", "br", "img", "hr", "input"))


@dataclass
class _Table:
    caption: str = ""
    rows: list[list[str]] = field(default_factory=list)


class Page(HTMLParser):
    """Its elements with their attributes, its tables, and the data in it. A tag that nothing closes is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.tables: list[_Table] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.words = ""
        """All text that is seen."""
        self._texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        assert len(known) == len(attrs), f"an attribute of {tag} stands twice"
        self.elements.append((tag, known))
        if tag not in _VOID:
            self._open.append(tag)
        self._texts.setdefault(tag, []).append("")
        if tag == "table":
            self.tables.append(_Table())
        elif tag == "tr":
            self.tables[-1].rows.append([])
        elif tag in ("td", "th"):
            self.tables[-1].rows[-1].append("")
        elif tag == "script":
            self.scripts.append((known, ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "script":
            attributes, before = self.scripts[-1]
            self.scripts[-1] = (attributes, before + data)
        elif inside != "style":
            self.words += data
        if inside:
            self._texts[inside][-1] += data
        cell = next((tag for tag in reversed(self._open) if tag in ("td", "th")), None)
        if cell is not None:
            self.tables[-1].rows[-1][-1] += data
        elif inside == "caption":
            self.tables[-1].caption += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def texts(self, tag: str) -> list[str]:
        """What stands in each of these elements itself."""
        return self._texts.get(tag, [])

    def table(self, caption: str) -> _Table:
        """The one whose caption begins so."""
        (found,) = [table for table in self.tables if table.caption.startswith(caption)]
        return found

    @property
    def specs(self) -> dict[str, dict[str, Any]]:
        """The charts, by the key of their figure."""
        found = [(own["id"], data) for own, data in self.scripts if own.get("type") == "application/json"]
        return {name.removesuffix("-data"): json.loads(data) for name, data in found}
