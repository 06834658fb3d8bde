"""The lines of a text for `csv`, which makes many times their memory of them: a row without an end is not read.

Left out: rows that are longer than whoever reads allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["Lines", "RowTooLong"]


class RowTooLong(Exception):
    """A row has more characters than each may have, of which the last ones stand in *line*."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


class Lines:
    """The lines of a *text*, one by one; those of one row, which quotes may join, have at most *longest* characters."""

    def __init__(self, text: TextIO, longest: int) -> None:
        self._text = text
        self._longest = longest
        self._line = 0
        self._row = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._text.readline(self._longest + 1):
            self._line += 1
            self._row += len(line)
            if self._row > self._longest:
                problem = f"a row has more than {self._longest} characters, and each may have so many at most"
                raise RowTooLong(problem, self._line)
            yield line

    def next_row(self) -> None:
        """A new row begins."""
        self._row = 0

    def rows(self, reader: Reader) -> Iterator[list[str]]:
        """What a *reader* of these lines makes of them."""
        for row in reader:
            self.next_row()
            yield row
