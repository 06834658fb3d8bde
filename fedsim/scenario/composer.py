"""Parsing events of a YAML document become plain data and marks, one event at a time and without recursion.

Left out, and refused with a reason: duplicate keys, tags, merge keys, keys that are not text, aliases that stand inside
themselves or that explode, and what is too large to be written by somebody who will read it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from fedsim.errors import nearest
from fedsim.scenario.document import NOTHING_INSIDE, Mark, SourceLocation
from fedsim.scenario.scalars import kind_of, scalar, show, show_text

__all__ = ["MAX_DEPTH", "MAX_ENTRIES", "MAX_KEY", "MAX_TEXT", "MAX_VALUES", "UNUSABLE", "Composer", "YamlError"]

MAX_DEPTH = 50
MAX_VALUES = 1_000_000  # aliases counted as if they were written out
MAX_ENTRIES = 250_000  # in one list or mapping
MAX_KEY = 1_024  # characters, as YAML 1.2.2, 7.4.2 has it for keys without a question mark
MAX_TEXT = 100_000  # characters

UNUSABLE = re.compile("[\0\ud800-\udfff]")  # reachable by escapes; no file name and no output can hold them
_MOST_SHARED = 1_000


class YamlError(Exception):
    """The text is not what a scenario may be; *location* says where. A `UserError` where the source is known."""

    def __init__(self, location: SourceLocation, problem: str) -> None:
        super().__init__(location, problem)
        self.location = location
        self.problem = problem


@dataclass(slots=True)
class _Node:
    """A list or mapping, finished or being filled, or another value with an anchor."""

    value: Any
    line: int
    column: int
    anchor: str | None = None
    parts: dict[str | int, Mark] = field(default_factory=dict)
    values: int = 1  # with all that is inside, aliases written out
    depth: int = 0  # lists and mappings inside each other, itself included
    open: bool = False
    is_mapping: bool = False
    key: tuple[str, int, int] | None = None  # of a mapping: the key that waits for its value, and its place

    def mark(self, line: int, column: int) -> Mark:
        return Mark(line, column, self.parts or NOTHING_INSIDE)


class Composer:
    """Takes the parsing events of one document in their order; `result` is the value and its mark.

    A file may have a million values, nearly all of them plain words in mappings: these cost no more objects than their
    marks.
    """

    def __init__(self) -> None:
        self._root: _Node | None = None
        self._open: list[_Node] = []
        self._anchors: dict[str, _Node] = {}
        self._shared: dict[str, str] = {}
        self._keys: set[str] = set()
        """Plain words that are fine as keys."""

    def result(self) -> tuple[object, Mark]:
        """The value and its mark; None when there was no document."""
        if self._root is None:
            return None, Mark(1, 1)
        return self._root.value, self._root.mark(self._root.line, self._root.column)

    def take(self, event: yaml.Event) -> None:
        """Build on with *event*. Raises `YamlError`."""
        start = event.start_mark
        line, column = (start.line + 1, start.column + 1) if start else (1, 1)
        match event:
            case yaml.ScalarEvent():
                self._take_scalar(event, line, column)
            case yaml.MappingStartEvent():
                self._begin({}, event, line, column)
            case yaml.CollectionEndEvent():
                node = self._open.pop()
                node.open = False
                self._put(node, node.line, node.column)
            case yaml.SequenceStartEvent():
                self._begin([], event, line, column)
            case yaml.AliasEvent():
                self._put(self._named(event.anchor or "", SourceLocation(line, column)), line, column)
            case yaml.DocumentStartEvent() if self._root is not None:
                raise YamlError(SourceLocation(line, column), "a second document starts here; a file holds one")

    def _take_scalar(self, event: yaml.ScalarEvent, line: int, column: int) -> None:
        if event.tag is not None:
            raise _tagged(event.tag, SourceLocation(line, column))
        text: str = event.value
        if event.style == '"' and UNUSABLE.search(text):
            problem = "the text holds a null character or half a character (by \\0 or \\ud800)"
            raise YamlError(SourceLocation(line, column), problem)
        parent = self._open[-1] if self._open else None
        if parent is not None and parent.is_mapping and parent.key is None:
            self._put_key(parent, self._key_of(event, parent, line, column), line, column)
            return
        if len(text) > MAX_TEXT:
            problem = f"the text has {len(text)} characters, and a text has at most {MAX_TEXT}"
            raise YamlError(SourceLocation(line, column), problem)
        try:
            value = text if event.style else scalar(text)
        except ValueError as error:
            raise YamlError(SourceLocation(line, column), str(error)) from None
        if isinstance(value, str):
            value = self._one_of(value)
        if parent is None or event.anchor is not None:
            self._put(self._anchored(_Node(value, line, column, event.anchor)), line, column)
        else:
            self._add(parent, value, NOTHING_INSIDE, 1, line, column)

    def _key_of(self, event: yaml.ScalarEvent, mapping: _Node, line: int, column: int) -> str:
        text: str = event.value
        if event.style or text not in self._keys:
            _check_key(event, SourceLocation(line, column), mapping.value)
            if not event.style and len(self._keys) < _MOST_SHARED:
                self._keys.add(text)
        return self._one_of(text)

    def _one_of(self, text: str) -> str:
        """The same text as before where it has been seen: the keys of a hundred thousand nodes are alike."""
        if len(self._shared) < _MOST_SHARED:
            return self._shared.setdefault(text, text)
        return self._shared.get(text, text)

    def _begin(self, value: object, event: yaml.CollectionStartEvent, line: int, column: int) -> None:
        location = SourceLocation(line, column)
        if event.tag is not None:
            raise _tagged(event.tag, location)
        if self._wants_key():
            raise YamlError(location, f"a key is text; this is {kind_of(value)} (put text with brackets into quotes)")
        is_mapping = isinstance(value, dict)
        node = _Node(value, line, column, event.anchor, depth=1, open=True, is_mapping=is_mapping)
        self._open.append(self._anchored(node))
        self._check_size(line, column)

    def _anchored(self, node: _Node) -> _Node:
        if node.anchor is not None:
            location = SourceLocation(node.line, node.column)
            if node.anchor in self._anchors:
                name, first = show_text(node.anchor), self._anchors[node.anchor].line
                raise YamlError(location, f"the anchor &{name} stands twice: in line {first} and here")
            self._anchors[node.anchor] = node
        return node

    def _named(self, anchor: str, location: SourceLocation) -> _Node:
        if self._wants_key():
            raise YamlError(location, f"the alias *{show_text(anchor)} cannot be a key; write the key out")
        if anchor not in self._anchors:
            near = nearest(show_text(anchor), self._anchors)
            raise YamlError(location, f"there is no anchor &{show_text(anchor)} before this alias{near}")
        node = self._anchors[anchor]
        if node.open:
            problem = f"the alias *{show_text(anchor)} stands inside its own anchor (line {node.line})"
            raise YamlError(location, problem)
        return node

    def _wants_key(self) -> bool:
        return bool(self._open) and self._open[-1].is_mapping and self._open[-1].key is None

    def _put(self, node: _Node, line: int, column: int) -> None:
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.depth = max(parent.depth, node.depth + 1)
        self._add(parent, node.value, node.parts or NOTHING_INSIDE, node.values, line, column)

    def _add(
        self, parent: _Node, value: object, parts: Mapping[str | int, Mark], values: int, line: int, column: int
    ) -> None:
        """A value, with the marks of what is inside it, becomes part of a list or mapping."""
        if parent.key is not None:
            key, line, column = parent.key
            parent.value[key] = value
            parent.parts[key] = Mark(line, column, parts)
            parent.key = None
        else:
            parent.parts[len(parent.value)] = Mark(line, column, parts)
            parent.value.append(value)
        parent.values += values
        if len(parent.parts) > MAX_ENTRIES:
            kind = kind_of(parent.value)
            problem = f"{kind} has more than {MAX_ENTRIES} entries here; put data into another file"
            raise YamlError(SourceLocation(line, column), problem)
        self._check_size(line, column)

    def _put_key(self, mapping: _Node, key: str, line: int, column: int) -> None:
        if key in mapping.parts:
            first = mapping.parts[key].line
            raise YamlError(
                SourceLocation(line, column), f"the key {show(key)} stands twice: in line {first} and in line {line}"
            )
        mapping.key = key, line, column

    def _check_size(self, line: int, column: int) -> None:
        latest = self._open[-1]
        if len(self._open) - 1 + latest.depth > MAX_DEPTH:
            raise YamlError(SourceLocation(line, column), f"lists and mappings are nested more than {MAX_DEPTH} deep")
        if latest.values > MAX_VALUES:
            problem = f"more than {MAX_VALUES} values (aliases written out); put data into another file"
            raise YamlError(SourceLocation(line, column), problem)


def _tagged(tag: str, location: SourceLocation) -> YamlError:
    shown = show(tag.replace("tag:yaml.org,2002:", "!!"))
    return YamlError(location, f"the tag {shown} is not allowed; write the plain value (text in quotes)")


def _check_key(event: yaml.ScalarEvent, location: SourceLocation, mapping: dict[str, object]) -> None:
    text: str = event.value
    if len(text) > MAX_KEY:
        raise YamlError(location, f"the key {show(text)} has {len(text)} characters, and a key has at most {MAX_KEY}")
    if event.style:
        return
    if text == "<<":
        raise YamlError(location, "merge keys (<<) are not part of YAML 1.2; write the keys out")
    try:
        value = scalar(text)
    except ValueError:
        value = 0
    if not isinstance(value, str):
        before = next(reversed(mapping.values()), None)
        decimal = isinstance(before, int) and not isinstance(before, bool) and text[:1].isdecimal()
        hand = f" (for a decimal comma write a point: {before}.{show_text(text)})" if decimal else ""
        problem = f"a key is text; {show_text(text) or 'this'} is {kind_of(value)}: put it into quotes{hand}"
        raise YamlError(location, problem)
