"""A graph as a file draws it: named nodes, links between them, and whatever attributes a tool gave them.

Leaves out what a file says of the whole graph, and all that only concerns the picture.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fedsim.errors import UserError, nearest
from fedsim.quick import check_work
from fedsim.settings import LONGEST_NAME

__all__ = [
    "MOST_ATTRIBUTES",
    "MOST_BYTES",
    "MOST_ITEMS",
    "MOST_VALUES",
    "Attributes",
    "Drawn",
    "DrawnLink",
    "DrawnNode",
    "number",
    "shown",
    "wrong_name",
]

MOST_BYTES = 32_000_000
MOST_ITEMS = 300_000
"""The most nodes, and the most links."""
MOST_ITEMS_IN_SECONDS = 210_000
"""Nodes and links together: a hundred thousand devices with a link each."""
MOST_VALUES = 1_000_000
"""The most values of all nodes and links together, names and ends included."""
MOST_ATTRIBUTES = 1_000

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_INFINITE = {"inf", "+inf", "infinity", "+infinity"}
_LONGEST_SHOWN = 60
_SHORT = reprlib.Repr()

Attributes = dict[str, Any]
"""What a file says of a node or a link: name -> value."""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """One node."""

    name: str
    attributes: Mapping[str, Any]
    place: str
    """Where it stands, as it follows the file's path in a message: ``:12``, or nothing."""

    def __str__(self) -> str:
        return f"node {self.name!r}"


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """One link; both ends are nodes."""

    source: str
    target: str
    directed: bool
    attributes: Mapping[str, Any]
    place: str

    def __str__(self) -> str:
        return f"link {self.source!r} - {self.target!r}"


class Drawn:
    """A graph that grows while its file, *path*, is read. All `UserError` begin with the path and the place."""

    def __init__(self, path: str, *, only_text: bool) -> None:
        self.path = path
        self.only_text = only_text
        """Whether the format has no numbers, so that text which spells one is one."""
        self.nodes: dict[str, DrawnNode] = {}
        self.links: list[DrawnLink] = []
        self.node_attributes: dict[str, DrawnNode] = {}
        """What nodes have attributes of that name, each with the first node that has it."""
        self.link_attributes: dict[str, DrawnLink] = {}

    def error(self, problem: str, place: str = "") -> UserError:
        """The error that says *problem* of what stands at *place*."""
        return UserError(f"{self.path}{place}: {problem}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """A block in which every `UserError` gets the path."""
        try:
            yield
        except UserError as error:
            raise self.error(str(error)) from error

    def add_node(
        self, name: str, attributes: Attributes, place: str = "", *, defaults: Attributes | None = None
    ) -> None:
        """Raises `UserError` when the name is taken or cannot be one, and when there are too many nodes.

        *defaults* hold where *attributes* say nothing; all nodes have the same.
        """
        self._refuse_no_name(name, place)
        if name in self.nodes:
            raise self.error(f"two nodes are called {name!r}, and names must differ; rename one", place)
        if len(self.nodes) == MOST_ITEMS:
            raise self.error(f"there are more than {MOST_ITEMS:,} nodes, which is too many for a file", place)
        self._refuse_more_than_takes_seconds()
        node = DrawnNode(name, _with(defaults, attributes), place)
        for attribute in attributes if self.nodes else node.attributes:
            if attribute not in self.node_attributes:
                self._refuse_too_many(self.node_attributes, place)
                self.node_attributes[attribute] = node
        self.nodes[name] = node

    def _refuse_more_than_takes_seconds(self) -> None:
        items = 1 + len(self.nodes) + len(self.links)
        check_work(items, MOST_ITEMS_IN_SECONDS, "nodes and links", self.path)

    def add_link(
        self,
        source: str,
        target: str,
        attributes: Attributes,
        place: str = "",
        *,
        directed: bool,
        defaults: Attributes | None = None,
    ) -> None:
        """Raises `UserError` when there are too many links. Its ends may be added later."""
        if len(self.links) == MOST_ITEMS:
            raise self.error(f"there are more than {MOST_ITEMS:,} links, which is too many for a file", place)
        self._refuse_more_than_takes_seconds()
        for end in (source, target):
            self._refuse_no_name(end, place)
        link = DrawnLink(source, target, directed, _with(defaults, attributes), place)
        for attribute in attributes if self.links else link.attributes:
            if attribute not in self.link_attributes:
                self._refuse_too_many(self.link_attributes, place)
                self.link_attributes[attribute] = link
        self.links.append(link)

    def check_ends(self) -> None:
        """Raises `UserError` when a link ends nowhere."""
        for link in self.links:
            for end in (link.source, link.target):
                if end not in self.nodes:
                    hand = nearest(end, self.nodes) or "; add it to the nodes"
                    raise self.error(f"{link}: no node is called {end!r}{hand}", link.place)

    def _refuse_no_name(self, name: str, place: str) -> None:
        if problem := wrong_name(name):
            raise self.error(f"a node is called {shown(name)}, which {problem}; rename it", place)

    def _refuse_too_many(self, attributes: Mapping[str, object], place: str) -> None:
        if len(attributes) == MOST_ATTRIBUTES:
            raise self.error(f"there are more than {MOST_ATTRIBUTES:,} different attributes; remove some", place)


def _with(defaults: Attributes | None, attributes: Attributes) -> Mapping[str, Any]:
    """Both, without a copy: many nodes may have many defaults."""
    return ChainMap(attributes, defaults) if defaults else attributes


def wrong_name(name: str) -> str | None:
    """Why *name* cannot be a node's, if so.

    >>> wrong_name("Wien/3"), wrong_name("a" * 1000)
    (None, 'has 1,000 characters, and a name has at most 200')
    """
    if not name or not name.isprintable():
        return "is no text that can be printed"
    if len(name) > LONGEST_NAME:
        return f"has {len(name):,} characters, and a name has at most {LONGEST_NAME}"
    return None


def number(value: object) -> float | None:
    """The number that *value* is or spells, which may be infinite; None when it is none, or too large for one.

    >>> number("1e9"), number(" 12 "), number("INF"), number(3), number("1e999"), number("1_000"), number("1 Gbit/s")
    (1000000000.0, 12.0, inf, 3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in _INFINITE:
            return math.inf
        if not _NUMBER.fullmatch(text) or math.isinf(float(text)):
            return None
        return float(text)
    try:
        return None if math.isnan(value) else float(value)
    except OverflowError:
        return None


def shown(value: object) -> str:
    """A value of a file as messages print it: on one line and short.

    >>> shown("1 Gbit/s"), shown([0] * 1000)
    ("'1 Gbit/s'", '[0, 0, 0, 0, 0, 0, ...]')
    """
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_SHOWN else f"{value[: _LONGEST_SHOWN - 3]}...")
    text = _SHORT.repr(value)  # never long, however deep and long the value is
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."
