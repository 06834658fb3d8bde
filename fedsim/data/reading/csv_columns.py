"""The columns of a CSV file, by their purposes: features, a target, whose a row is, what is set aside for tests."""

from __future__ import annotations

import csv
import math
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import Flaw, nearest, some
from fedsim.files import shown
from fedsim.lines import Lines, open_csv
from fedsim.quick import check_work
from fedsim.settings import LONGEST_NAME

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["LARGEST", "Columns", "Purposes", "Words", "read_columns"]

MOST_BYTES = 500_000_000
CELLS_AT_ONCE = 3_000  # they stay near the processor
MOST_ROWS = 1_000_000
MOST_NUMBERS = 20_000_000
"""In all features: 200 rows of a hundred thousand columns. Python reads so many in seconds."""
MOST_NUMBERS_IN_SECONDS = 12_000_000
LONGEST_ROW = 16_000_000
"""Characters of a row: a million columns or so."""
LARGEST = float(np.finfo(np.float32).max)
"""A number in a table, at most."""
TEST_WORDS = {"0": False, "false": False, "train": False, "1": True, "true": True, "test": True}


class Purposes(NamedTuple):
    """The names of the columns."""

    target: str
    regression: bool
    """Whether the target holds numbers, and not words."""
    features: Sequence[str] | None
    """In this order; None: all that have no other purpose, as they stand."""
    client: str | None
    test: str | None


class Words:
    """A column of words, each different one kept once."""

    def __init__(self) -> None:
        self.place: dict[str, int] = {}
        self._at = array("q")

    def add(self, word: str) -> None:
        """The next row has this *word*."""
        self._at.append(self.place.setdefault(word, len(self.place)))

    def numbered(self, names: Sequence[str]) -> NDArray[np.int64]:
        """(rows,) the place of each row's word in *names*, which are all of the words."""
        number = np.empty(len(names), np.int64)
        number[[self.place[name] for name in names]] = np.arange(len(names))
        return number[np.frombuffer(self._at, np.int64)]


class _Places:
    """Where the columns of a header stand, found in a time that does not grow with how many there are."""

    def __init__(self, header: Sequence[str]) -> None:
        self.header = header
        self._first = {name: at for at, name in reversed(list(enumerate(header)))}
        self._number = Counter(header)

    def of(self, name: str) -> int:
        """The place of the one column called *name*."""
        header = self.header
        if name not in self._first:
            if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
                raise Flaw("columns are separated by commas, and numbers have points; save the file as such a CSV")
            shown = some([column[:30] for column in header], most=10) or "none"
            raise Flaw(f"no column is called {name!r}{nearest(name, header)} (the columns are {shown})")
        if self._number[name] > 1:
            raise Flaw(f"two columns are called {name!r}; rename one")
        return self._first[name]


@dataclass(frozen=True, eq=False)
class Columns:
    """What a table holds, as text where it is not yet known to be numbers."""

    features: NDArray[np.float32]
    """(rows, features)"""
    target: Words
    values: NDArray[np.float32] | None
    """(rows,) the target as numbers, for regression."""
    client: Words | None
    test: NDArray[np.bool_] | None


def read_columns(path: Path, purposes: Purposes) -> Columns:
    """The columns of the CSV file at *path*; raises `UserError`, with its line, for what is wrong there."""
    with open_csv(path, what="a CSV file", most_bytes=MOST_BYTES, longest_row=LONGEST_ROW) as (rows, lines):
        return _parse(purposes, rows, lines, shown(path))


def _parse(purposes: Purposes, rows: Reader, lines: Lines, where: str) -> Columns:
    header = [name.strip() for name in next(rows, [])]
    lines.next_row()
    if not any(header):
        raise Flaw("must name the columns, and is empty")
    places = _Places(header)
    target_at = places.of(purposes.target)
    client_at, test_at = (None if name is None else places.of(name) for name in (purposes.client, purposes.test))
    features_at = _features(purposes.features, places, {target_at, client_at, test_at})
    names = [header[at] for at in features_at]
    features, values = array("f"), array("f")
    target, client = Words(), Words()
    test = bytearray()
    number = 0
    for batch in _batches(rows, lines, len(header)):
        number += len(batch)
        if number > MOST_ROWS or number * len(names) > MOST_NUMBERS:
            raise Flaw(
                f"there are more rows of {len(names):,} features than a table may have: {MOST_ROWS:,} rows and "
                f"{MOST_NUMBERS:,} numbers are the most; leave rows out, or save it for data set arrays"
            )
        check_work(number * len(names), MOST_NUMBERS_IN_SECONDS, "numbers", where)
        features.frombytes(_numbers(batch, features_at, header).tobytes())
        for line, row in batch:
            try:
                word = _word(row[target_at], header[target_at])
                if purposes.regression:
                    values.append(_number(word, header[target_at]))
                else:
                    target.add(word)
                if client_at is not None:
                    client.add(_word(row[client_at], header[client_at]))
                if test_at is not None:
                    test.append(_is_test(row[test_at], header[test_at]))
            except Flaw as error:
                raise Flaw(str(error), line) from error
    if not number:
        raise Flaw("there are no rows below the names of the columns")
    return Columns(
        np.frombuffer(features, np.float32).reshape(number, -1),
        target,
        np.frombuffer(values, np.float32) if purposes.regression else None,
        client if client_at is not None else None,
        np.frombuffer(test, np.bool_) if test_at is not None else None,
    )


def _features(named: Sequence[str] | None, places: _Places, taken: set[int | None]) -> list[int]:
    """Where the features stand."""
    if named is not None:
        return [places.of(name) for name in named]
    header = places.header
    found = [at for at in range(len(header)) if at not in taken]
    if not found:
        raise Flaw("there are no columns of features beside those of target, client and test")
    for at in found:
        if not header[at]:
            raise Flaw(f"column {at + 1} of {len(header)} has no name; give it one, or say which are features")
        places.of(header[at])
    return found


def _batches(rows: Reader, lines: Lines, columns: int) -> Iterator[list[tuple[int, list[str]]]]:
    """(line, cells) of the rows that are not empty, some at once; an error comes after what stands before it."""
    at_once = max(CELLS_AT_ONCE // columns, 1)
    batch: list[tuple[int, list[str]]] = []
    error: Exception | None = None
    while error is None:
        try:
            row = next(rows)
            if len(row) == columns:
                batch.append((rows.line_num, row))
            elif row:
                raise Flaw(f"{len(row)} columns, and the first line names {columns}")
        except (StopIteration, UnicodeDecodeError, csv.Error, Flaw) as found:
            error = found
        lines.next_row()
        if batch and (error or len(batch) == at_once):
            yield batch
            batch = []
    if not isinstance(error, StopIteration):
        raise error


def _numbers(batch: Sequence[tuple[int, list[str]]], at: Sequence[int], header: Sequence[str]) -> NDArray[np.float32]:
    """The numbers in the columns *at*, row by row: all at once, and one by one where something is wrong with some."""
    cells = [row[place] for _, row in batch for place in at]
    if "_" not in "".join(cells):
        try:
            numbers = np.fromiter(map(float, cells), np.float64, len(cells))
        except ValueError:
            pass
        else:
            if (np.abs(numbers) <= LARGEST).all():
                return numbers.astype(np.float32)
    for line, row in batch:
        for place in at:
            try:
                _number(row[place], header[place])
            except Flaw as error:
                raise Flaw(str(error), line) from error
    raise AssertionError("a number is bad among others, and good alone")


def _number(cell: str, column: str) -> float:
    try:
        number = math.nan if "_" in cell else float(cell)
    except ValueError:
        number = math.nan
    if not abs(number) <= LARGEST:
        if not cell.strip():
            raise Flaw(f"the cell in the column {column[:30]!r} is empty; fill it with a number, or leave the line out")
        raise Flaw(f"{cell.strip()[:30]!r} in the column {column[:30]!r} must be a number, at most {LARGEST:.3g}")
    return number


def _word(cell: str, column: str) -> str:
    word = cell.strip()
    if not 1 <= len(word) <= LONGEST_NAME:
        said = f"{len(word)} characters" if word else "nothing"
        raise Flaw(f"{said} in the column {column[:30]!r}; write a word of at most {LONGEST_NAME} characters")
    return word


def _is_test(cell: str, column: str) -> bool:
    word = cell.strip().lower()
    if word not in TEST_WORDS:
        raise Flaw(f"{cell.strip()[:30]!r} in the column {column[:30]!r} must be one of {', '.join(TEST_WORDS)}")
    return TEST_WORDS[word]
