"""Metrics and numbers as runs have written them into a store, line by line; each is checked when it is asked for.

A store may have millions, of which a run asks for few. So a file is read once, from where it was last read, and a line
is kept as it is until somebody wants its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from fedsim.files import read_own_file, shown
from fedsim.learning.operations.operation import Value
from fedsim.learning.stored_values import Damaged, read_metrics

__all__ = ["KnownMetrics", "complete_lines"]

_NAMED = re.compile(rb'\{"key":"([^"\\]+)"')


class KnownMetrics:
    """By name. *tell* hears of damage, once for each file; *then* says what becomes of what is damaged."""

    def __init__(self, tell: Callable[[str], None], *, then: str) -> None:
        self._tell, self._then = tell, then
        self._values: dict[str, Value] = {}
        self._lines: dict[str, list[tuple[Path, bytes]]] = {}
        """Of values that nobody has asked for yet; several runs may have written down the same one."""
        self._read_bytes: dict[Path, int] = {}
        self._told: set[Path] = set()

    def read(self, path: Path) -> None:
        """Take the complete lines that have been added to the file *path* since it was last read."""
        content = read_own_file(path) or b""
        begin = self._read_bytes.get(path, 0)
        end = content.rfind(b"\n") + 1
        for line in filter(None, content[begin:end].split(b"\n")):
            if found := _NAMED.match(line):
                self._lines.setdefault(found[1].decode(), []).append((path, line))
            else:
                self._tell_of(path, "has a line without a name")
        self._read_bytes[path] = max(begin, end)

    def get(self, name: str) -> Value | None:
        """The value of that name; None when there is none, or only damaged ones."""
        if name not in self._values:
            for path, line in self._lines.pop(name, ()):
                try:
                    found, value = read_metrics(line)
                    self._values[found] = value
                except Damaged as damage:
                    self._tell_of(path, str(damage))
        return self._values.get(name)

    def add(self, name: str, value: Value) -> None:
        """Take a value that has just been computed."""
        self._values[name] = value

    def names(self) -> Iterator[str]:
        """Of all values, damaged ones too."""
        yield from self._values
        yield from self._lines

    def _tell_of(self, path: Path, damage: str) -> None:
        if path not in self._told:
            self._told.add(path)
            self._tell(f"{shown(path)}: a line {damage}; {self._then}")


def complete_lines(path: Path) -> list[bytes]:
    """The lines of a file; a last one that was cut off, or is being written, does not count."""
    return [line for line in (read_own_file(path) or b"").split(b"\n")[:-1] if line]
