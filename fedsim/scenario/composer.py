"""Parsing events of a YAML document become plain data and marks, one event at a time and without recursion.

Left out, and refused with a reason: duplicate keys, tags, merge keys, keys that are not text, aliases that stand inside
themselves or that explode, and what is too large to be written by somebody who will read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

import yaml

from fedsim.errors import nearest
from fedsim.scenario.document import NOTHING_INSIDE, Mark, Place
from fedsim.scenario.scalars import kind_of, scalar, show, show_text

__all__ = [
    "MAX_ANCHORS",
    "MAX_DEPTH",
    "MAX_ENTRIES",
    "MAX_KEY",
    "MAX_TEXT",
    "MAX_VALUES",
    "UNUSABLE",
    "Composer",
    "YamlError",
]

MAX_DEPTH = 50
MAX_VALUES = 1_000_000  # aliases counted as if they were written out
MAX_ENTRIES = 250_000  # in one list or mapping
MAX_KEY = 1_024  # characters, as YAML 1.2.2, 7.4.2 has it for keys without a question mark
MAX_TEXT = 100_000  # characters
MAX_ANCHORS = 10_000

UNUSABLE = re.compile("[\0\ud800-\udfff]")  # reachable by escapes; no file name and no output can hold them
_MOST_COMPARED = 1_000
_MOST_SHARED = 1_000


class YamlError(Exception):
    """The text is not what a scenario may be; *place* says where. Becomes a `UserError` where the source is known."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(place, problem)
        self.place = place
        self.problem = problem


@dataclass(slots=True)
class _Node:
    """One value, finished or (a list or mapping) being filled."""

    value: object
    place: Place
    anchor: str | None = None
    parts: dict[str | int, Mark] = field(default_factory=dict)
    values: int = 1  # with all that is inside, aliases written out
    depth: int = 0  # lists and mappings inside each other, itself included
    open: bool = False
    key: tuple[str, Place] | None = None  # of a mapping: the key that waits for its value

    def mark(self, place: Place) -> Mark:
        return Mark(place.line, place.column, self.parts or NOTHING_INSIDE)


class Composer:
    """Takes the parsing events of one document in their order; `result` is the value and its mark."""

    def __init__(self) -> None:
        self._root: _Node | None = None
        self._open: list[_Node] = []
        self._anchors: dict[str, _Node] = {}
        self._shared: dict[str, str] = {}

    def result(self) -> tuple[object, Mark]:
        """The value and its mark; None when there was no document."""
        if self._root is None:
            return None, Mark(1, 1)
        return self._root.value, self._root.mark(self._root.place)

    def take(self, event: yaml.Event) -> None:
        """Build on with *event*. Raises `YamlError`."""
        start = event.start_mark
        place = Place(start.line + 1, start.column + 1) if start else Place(1, 1)
        match event:
            case yaml.DocumentStartEvent() if self._root is not None:
                raise YamlError(place, "a second document starts here; a file holds one")
            case yaml.AliasEvent():
                self._put(self._named(event.anchor or "", place), place)
            case yaml.ScalarEvent():
                self._put(self._scalar(event, place), place)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin({} if isinstance(event, yaml.MappingStartEvent) else [], event, place)
            case yaml.CollectionEndEvent():
                node = self._open.pop()
                node.open = False
                self._put(node, node.place)

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> _Node:
        _refuse_tag(event, place)
        if event.style == '"' and UNUSABLE.search(event.value):
            raise YamlError(place, "the text holds a null character or half a character (by \\0 or \\ud800)")
        if self._wants_key():
            return _Node(self._one_of(_key(event, place, self._before())), place)
        if len(event.value) > MAX_TEXT:
            raise YamlError(place, f"the text has {len(event.value)} characters, and a text has at most {MAX_TEXT}")
        try:
            value = event.value if event.style else scalar(event.value)
        except ValueError as error:
            raise YamlError(place, str(error)) from None
        value = self._one_of(value) if isinstance(value, str) else value
        return self._anchored(_Node(value, place, event.anchor))

    def _one_of(self, text: str) -> str:
        """The same text as before where it has been seen: the keys of a hundred thousand nodes are alike."""
        if len(self._shared) < _MOST_SHARED:
            return self._shared.setdefault(text, text)
        return self._shared.get(text, text)

    def _begin(self, value: object, event: yaml.CollectionStartEvent, place: Place) -> None:
        _refuse_tag(event, place)
        if self._wants_key():
            raise YamlError(place, f"a key is text; this is {kind_of(value)} (put text with brackets into quotes)")
        node = self._anchored(_Node(value, place, event.anchor, depth=1, open=True))
        self._open.append(node)
        self._check_size(place)

    def _anchored(self, node: _Node) -> _Node:
        if node.anchor is not None:
            if node.anchor in self._anchors:
                name, first = show_text(node.anchor), self._anchors[node.anchor].place.line
                raise YamlError(node.place, f"the anchor &{name} stands twice: in line {first} and here")
            if len(self._anchors) == MAX_ANCHORS:
                raise YamlError(node.place, f"there are more than {MAX_ANCHORS} anchors; put data into another file")
            self._anchors[node.anchor] = node
        return node

    def _named(self, anchor: str, place: Place) -> _Node:
        if self._wants_key():
            raise YamlError(place, f"the alias *{show_text(anchor)} cannot be a key; write the key out")
        if anchor not in self._anchors:
            near = nearest(show_text(anchor), islice(self._anchors, _MOST_COMPARED))
            raise YamlError(place, f"there is no anchor &{show_text(anchor)} before this alias{near}")
        node = self._anchors[anchor]
        if node.open:
            start = node.place.line
            raise YamlError(place, f"the alias *{show_text(anchor)} stands inside its own anchor (line {start})")
        return node

    def _before(self) -> object:
        """The value before this one in the mapping that is being filled, if there is one."""
        mapping = self._open[-1].value
        return next(reversed(mapping.values()), None) if isinstance(mapping, dict) else None

    def _wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def _put(self, node: _Node, place: Place) -> None:
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        if isinstance(parent.value, dict):
            if parent.key is None:
                self._put_key(parent, str(node.value), place)
                return
            key, place = parent.key
            parent.value[key] = node.value
            parent.parts[key] = node.mark(place)
            parent.key = None
        elif isinstance(parent.value, list):
            parent.parts[len(parent.value)] = node.mark(place)
            parent.value.append(node.value)
        parent.values += node.values
        parent.depth = max(parent.depth, node.depth + 1)
        if len(parent.parts) > MAX_ENTRIES:
            kind = kind_of(parent.value)
            raise YamlError(place, f"{kind} has more than {MAX_ENTRIES} entries here; put data into another file")
        self._check_size(place)

    def _put_key(self, mapping: _Node, key: str, place: Place) -> None:
        if key in mapping.parts:
            first = mapping.parts[key].line
            raise YamlError(place, f"the key {show(key)} stands twice: in line {first} and in line {place.line}")
        mapping.key = key, place

    def _check_size(self, place: Place) -> None:
        if len(self._open) - 1 + self._open[-1].depth > MAX_DEPTH:
            raise YamlError(place, f"lists and mappings are nested more than {MAX_DEPTH} deep")
        if self._open[-1].values > MAX_VALUES:
            raise YamlError(place, f"more than {MAX_VALUES} values (aliases written out); put data into another file")


def _refuse_tag(event: yaml.ScalarEvent | yaml.CollectionStartEvent, place: Place) -> None:
    if event.tag is not None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        raise YamlError(place, f"the tag {show(tag)} is not allowed; write the plain value (text in quotes)")


def _key(event: yaml.ScalarEvent, place: Place, before: object) -> str:
    text: str = event.value
    if len(text) > MAX_KEY:
        raise YamlError(place, f"the key {show(text)} has {len(text)} characters, and a key has at most {MAX_KEY}")
    if event.style:
        return text
    if text == "<<":
        raise YamlError(place, "merge keys (<<) are not part of YAML 1.2; write the keys out")
    try:
        value = scalar(text)
    except ValueError:
        value = 0
    if not isinstance(value, str):
        decimal = isinstance(before, int) and not isinstance(before, bool) and text.isdecimal()
        hand = f" (for a decimal comma write a point: {before}.{show_text(text)})" if decimal else ""
        problem = f"a key is text; {show_text(text) or 'this'} is {kind_of(value)}: put it into quotes{hand}"
        raise YamlError(place, problem)
    return text
