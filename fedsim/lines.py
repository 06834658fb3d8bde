"""The lines of a text for `csv`, which makes many times their memory of them: a row without an end is not read.

Left out: rows that are longer than whoever reads allows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from fedsim.errors import Flaw, UserError
from fedsim.files import no_text, open_text_file, shown

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["Lines", "open_csv"]


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
                raise Flaw(problem, self._line)
            yield line

    def next_row(self) -> None:
        """A new row begins."""
        self._row = 0

    def rows(self, reader: Reader) -> Iterator[list[str]]:
        """What a *reader* of these lines makes of them."""
        for row in reader:
            self.next_row()
            yield row


@contextmanager
def open_csv(path: Path, *, what: str, most_bytes: int, longest_row: int) -> Iterator[tuple[Reader, Lines]]:
    """The rows of the CSV file *path*, and its lines; else as `fedsim.files.open_text_file`.

    A `Flaw` inside the block is told as a `UserError` with the line it names, or else the one that is being read.
    """
    with open_text_file(path, what=what, most_bytes=most_bytes) as text:
        lines = Lines(text, longest_row)
        rows = csv.reader(lines, strict=True)
        try:
            yield rows, lines
        except UnicodeDecodeError as error:
            raise no_text(path, error, rows.line_num) from error
        except (Flaw, csv.Error) as error:
            hint = "; is this a CSV file?" if isinstance(error, csv.Error) else ""
            line = getattr(error, "line", None) or max(rows.line_num, 1)
            raise UserError(f"{shown(path)}:{line}: {error}{hint}") from error
