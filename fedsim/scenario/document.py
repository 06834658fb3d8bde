"""A scenario as it was written: plain data, and for every value the place where the user can find it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from fedsim.scenario.scalars import printable

__all__ = ["NOTHING_INSIDE", "Document", "KeyPath", "Mark", "SourceLocation", "SourceLocations", "dotted"]

KeyPath = tuple[str | int, ...]
"""The way to a value: keys of mappings and positions in lists, counted from 0."""


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where something was written: line and column, both counted from 1.

    *origin* replaces the document's own source where a value came from elsewhere: the path of another file, as it is,
    or with line 0, which means that there are no lines, an option of the command line.
    """

    line: int
    column: int
    origin: str | None = None

    def text(self, source: str) -> str:
        """The place as messages print it.

        >>> SourceLocation(12, 3).text("scenario.yaml"), SourceLocation(0, 0, "--set seeds=[1]").text("scenario.yaml")
        ('scenario.yaml:12', '--set seeds=[1]')
        """
        origin = printable(source if self.origin is None else self.origin)
        return f"{origin}:{self.line}" if self.line else origin


NOTHING_INSIDE: Mapping[str | int, Mark] = MappingProxyType({})
"""The parts of a mark without parts: one for all."""


class Mark(NamedTuple):
    """Line and column of one value and the marks of what is inside it; a file may have a million of them.

    The value behind a key has the place of its key. What is inside an alias has the place where its anchor wrote it.
    *origin* is that of the place, and of all places inside that have none of their own.
    """

    line: int
    column: int
    parts: Mapping[str | int, Mark] = NOTHING_INSIDE
    origin: str | None = None


class SourceLocations(Mapping[KeyPath, SourceLocation]):
    """Path -> place, for every value of a document. A tree inside, so that an alias costs no memory."""

    def __init__(self, root: Mark) -> None:
        self._root = root

    @property
    def root(self) -> Mark:
        """The mark of the whole document."""
        return self._root

    def __getitem__(self, path: KeyPath) -> SourceLocation:
        location, missing = self._walked(path)
        if missing:
            raise KeyError(path)
        return location

    def __iter__(self) -> Iterator[KeyPath]:
        pending: list[tuple[KeyPath, Mark]] = [((), self._root)]
        while pending:
            path, mark = pending.pop()
            yield path
            pending.extend(((*path, step), part) for step, part in reversed(list(mark.parts.items())))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def nearest(self, path: KeyPath) -> SourceLocation:
        """The place of *path*, or of its nearest ancestor that has one."""
        return self._walked(path)[0]

    def _walked(self, path: KeyPath) -> tuple[SourceLocation, KeyPath]:
        """The place as near to *path* as there is one, and the steps from there that lead nowhere."""
        mark, origin = self._root, self._root.origin
        for walked, step in enumerate(path):
            if step not in mark.parts:
                return SourceLocation(mark.line, mark.column, origin), path[walked:]
            mark = mark.parts[step]
            origin = origin if mark.origin is None else mark.origin
        return SourceLocation(mark.line, mark.column, origin), ()

    def replaced(self, path: KeyPath, location: SourceLocation) -> SourceLocations:
        """A copy in which the value at *path* (whose parent exists) and all that is inside it stand at *location*."""
        new = Mark(location.line, location.column, NOTHING_INSIDE, location.origin)

        def renewed(mark: Mark, rest: KeyPath) -> Mark:
            if not rest:
                return new
            inner = mark.parts.get(rest[0], new)
            return mark._replace(parts={**mark.parts, rest[0]: renewed(inner, rest[1:])})

        return SourceLocations(renewed(self._root, path))

    def grafted(self, key: str, inner: SourceLocations, source: str) -> SourceLocations:
        """A copy in which what is below the top-level *key* was read from another document, *source*."""
        graft = inner._root._replace(origin=source)
        return SourceLocations(self._root._replace(parts={**self._root.parts, key: graft}))


@dataclass(frozen=True)
class Document:
    """What `read_yaml` returns. *data* may share parts (aliases): never change it in place.

    *source* is the path as it is, for files that are named relative to it; `where` makes it printable.
    """

    data: dict[str, object]
    source: str
    locations: SourceLocations
    runs_code: bool = True
    """Whether classes of the user's are loaded; if not, `fedsim.outside.Unread` stands for each."""

    def location_of(self, path: KeyPath) -> SourceLocation:
        """The place of *path*, or of its nearest ancestor that was written down."""
        return self.locations.nearest(path)

    def where(self, path: KeyPath) -> str:
        """The place of *path* as messages print it: ``scenario.yaml:12`` or ``--set seeds=[1]``."""
        return self.location_of(path).text(self.source)


def dotted(path: KeyPath) -> str:
    """A path as messages print it.

    >>> dotted(("protocols", 0, "mu")), dotted(("devices", "slow one", "power_w"))
    ('protocols[0].mu', 'devices."slow one".power_w')
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            plain = re.fullmatch(r"[\w-]{1,60}", step)
            short = step if len(step) <= 60 else step[:57] + "..."
            name = step if plain else printable(json.dumps(short, ensure_ascii=False))
            text += f".{name}" if text else name
    return text
