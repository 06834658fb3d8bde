"""Metrics and numbers as runs have written them into a store, line by line; each is checked when it is asked for.

A store may have millions, of which a run asks for few. So a file is read once, from where it was last read, and a line
is kept as it is until somebody wants its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from fedsim.files import read_own_file, shown
from fedsim.learning.operations.operation import Value
from fedsim.learning.stored_values import Damaged, read_metrics

__all__ = ["KnownMetrics", "complete_lines"]

_NAMED = re.compile(rb'\{"key":"([^"\\]+)"')


class _Line(NamedTuple):
    """A line of a file, and its number among those that are not empty."""

    path: Path
    number: int
    text: bytes


class KnownMetrics:
    """By name. *tell* hears of damage, once for each file; *then* says what becomes of what is damaged."""

    def __init__(self, tell: Callable[[str], None], *, then: str) -> None:
        self._tell, self._then = tell, then
        self._values: dict[str, Value] = {}
        self._lines: dict[str, list[_Line]] = {}
        """Of values that nobody has asked for yet; several runs may have written down the same one."""
        self._read_so_far: dict[Path, tuple[int, int]] = {}
        """Bytes and lines of each file."""
        self._told: set[Path] = set()

    def read(self, path: Path) -> None:
        """Take the complete lines that have been added to the file *path* since it was last read."""
        content = read_own_file(path) or b""
        begin, number = self._read_so_far.get(path, (0, 0))
        end = content.rfind(b"\n") + 1
        for text in filter(None, content[begin:end].split(b"\n")):
            number += 1
            line = _Line(path, number, text)
            if found := _NAMED.match(text):
                self._lines.setdefault(found[1].decode(), []).append(line)
            else:
                self._take(line)
        self._read_so_far[path] = max(begin, end), number

    def get(self, name: str) -> Value | None:
        """The value of that name; None when there is none, or only damaged ones."""
        if name not in self._values:
            for line in self._lines.pop(name, ()):
                self._take(line)
        return self._values.get(name)

    def add(self, name: str, value: Value) -> None:
        """Take a value that has just been computed."""
        self._values[name] = value

    def names(self) -> Iterator[str]:
        """Of all values, damaged ones too."""
        yield from self._values
        yield from self._lines

    def _take(self, line: _Line) -> None:
        try:
            name, value = read_metrics(line.text)
            self._values[name] = value
        except Damaged as damage:
            if line.path not in self._told:
                self._told.add(line.path)
                self._tell(f"{shown(line.path)}:{line.number}: {damage}; {self._then}")


def complete_lines(path: Path) -> list[bytes]:
    """The lines of a file; a last one that was cut off, or is being written, does not count."""
    return [line for line in (read_own_file(path) or b"").split(b"\n")[:-1] if line]
