"""A table of one's own: a CSV file with a line of column names, a target, and numbers.

Left out: missing values (a table with gaps is refused), columns of words as features, and other separators.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from annotated_types import MinLen
from numpy.typing import NDArray
from pydantic import model_validator

from fedsim.data.pile import Clients, Pile
from fedsim.data.sampled import SampledDataset
from fedsim.data.settings import Generators
from fedsim.data.source import SourcePath, locate
from fedsim.errors import Misfit, UserError, nearest, some
from fedsim.files import no_text, open_text_file, shown
from fedsim.lines import Lines, RowTooLong
from fedsim.quick import check_work
from fedsim.settings import LONGEST_NAME, Name, Several

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["Table"]

WHAT = "a CSV file with your samples, one in a line, is needed"
MOST_BYTES = 500_000_000
CELLS_AT_ONCE = 3_000  # they stay near the processor
STANDARDISED_AT_ONCE = 1_000_000
MOST_ROWS = 1_000_000
MOST_NUMBERS = 20_000_000
"""In all features: 200 rows of a hundred thousand columns. Python reads so many in seconds."""
MOST_NUMBERS_IN_SECONDS = 12_000_000
LONGEST_ROW = 16_000_000
"""Characters of a row: a million columns or so."""
MOST_CLASSES = 1000
FLOAT_BYTES = 4
LARGEST = float(np.finfo(np.float32).max)
TEST_WORDS = {"0": False, "false": False, "train": False, "1": True, "true": True, "test": True}


class _Bad(Exception):
    """What is wrong with a line: with *line*, or with the one that is being read."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(frozen=True, eq=False)
class _Columns:
    """What a table holds, as text where it is not yet known to be numbers."""

    features: NDArray[np.float32]
    """(rows, features)"""
    target: _Words
    values: NDArray[np.float32] | None
    """(rows,) the target as numbers, for regression."""
    client: _Words | None
    test: NDArray[np.bool_] | None


class _Words:
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
                raise _Bad("columns are separated by commas, and numbers have points; save the file as such a CSV")
            shown = some([column[:30] for column in header], most=10) or "none"
            raise _Bad(f"no column is called {name!r}{nearest(name, header)} (the columns are {shown})")
        if self._number[name] > 1:
            raise _Bad(f"two columns are called {name!r}; rename one")
        return self._first[name]


class Table(SampledDataset):
    """Your own table: a CSV file with columns of numbers, and one with the class or the number to predict."""

    name: Literal["csv"] = "csv"
    path: SourcePath
    """The file. Its first line names the columns."""
    target: Name
    """The column that models learn to tell."""
    task: Literal["classification", "regression"] = "classification"
    """Whether *target* holds classes (any words; sorted, by value if all are whole numbers) or numbers."""
    features: Annotated[Several[Name], MinLen(1)] | None = None
    """The columns that models see, in this order; left out, all that have no other purpose, as they stand."""
    client: Name | None = None
    """The column that says whose a sample is, in any words; with partition natural these are the clients."""
    test: Name | None = None
    """The column that says which samples are set aside for tests: test, true or 1, and train, false or 0."""
    standardise: bool = False
    """Whether each feature is brought to mean 0 and deviation 1 over all rows that are not set aside by the column
    *test*; one that never changes becomes 0."""

    @model_validator(mode="after")
    def _apart(self) -> Table:
        used = {"target": self.target, "client": self.client, "test": self.test}
        taken: dict[str, str] = {}
        for key, column in used.items():
            if column is not None and column in taken:
                raise Misfit(f"{key}={column!r} is the column of {taken[column]} too; name another", key)
            if column is not None:
                taken[column] = key
        for place, column in enumerate(self.features or ()):
            if column in taken:
                problem = "is named twice" if taken[column] == "features" else f"is the column of {taken[column]}"
                raise Misfit(f"features: {column!r} {problem}; leave it out", "features", place)
            taken[column] = "features"
        if self.client is None and self.partition.natural:
            problem = "natural needs the column that says whose a sample is; set client, or choose another partition"
            raise Misfit(problem, "partition")
        return self

    def pile(self, clients: Clients, generator: Generators) -> Pile:
        """Samples of shape (features,), four bytes for each number and for the target on the wire."""
        path = locate(self.path, what=WHAT)
        columns = self._read(path)
        x = columns.features
        test = columns.test
        if test is not None and test.all():
            raise UserError(f"{shown(path)}: the column {self.test!r} sets all rows aside for tests; some must be left")
        owner, names = None, tuple(sorted(columns.client.place)) if columns.client else ()
        if columns.client:
            owner = columns.client.numbered(names)
        y: NDArray[Any]
        if columns.values is not None:
            y, class_names = columns.values, None
        else:
            class_names = self._classes(path, columns.target.place.keys())
            y = columns.target.numbered(class_names)
        return Pile(
            x=self._standardised(path, x, slice(None) if test is None else ~test) if self.standardise else x,
            y=y,
            classes=None if class_names is None else len(class_names),
            class_names=class_names or (),
            sample_bytes=float(FLOAT_BYTES * (x.shape[1] + 1)),
            owner=owner,
            owner_names=names,
            test=test,
        )

    def _read(self, path: Path) -> _Columns:
        with open_text_file(path, what="a CSV file", most_bytes=MOST_BYTES) as text:
            lines = Lines(text, LONGEST_ROW)
            rows = csv.reader(lines, strict=True)
            try:
                return self._parse(rows, lines, shown(path))
            except UnicodeDecodeError as error:
                raise no_text(path, error, rows.line_num) from error
            except (_Bad, RowTooLong, csv.Error) as error:
                hint = "; is this a CSV file?" if isinstance(error, csv.Error) else ""
                line = getattr(error, "line", None) or max(rows.line_num, 1)
                raise UserError(f"{shown(path)}:{line}: {error}{hint}") from error

    def _parse(self, rows: Reader, lines: Lines, where: str) -> _Columns:
        header = [name.strip() for name in next(rows, [])]
        lines.next_row()
        if not any(header):
            raise _Bad("must name the columns, and is empty")
        places = _Places(header)
        target_at = places.of(self.target)
        client_at, test_at = (None if name is None else places.of(name) for name in (self.client, self.test))
        features_at = self._features(places, {target_at, client_at, test_at})
        names = [header[at] for at in features_at]
        features, values = array("f"), array("f")
        target, client = _Words(), _Words()
        test = bytearray()
        number = 0
        for batch in _batches(rows, lines, len(header)):
            number += len(batch)
            if number > MOST_ROWS or number * len(names) > MOST_NUMBERS:
                raise _Bad(
                    f"there are more rows of {len(names):,} features than a table may have: {MOST_ROWS:,} rows and "
                    f"{MOST_NUMBERS:,} numbers are the most; leave rows out, or save it for data set arrays"
                )
            check_work(number * len(names), MOST_NUMBERS_IN_SECONDS, "numbers", where)
            features.frombytes(_numbers(batch, features_at, header).tobytes())
            for line, row in batch:
                try:
                    word = _word(row[target_at], header[target_at])
                    if self.task == "regression":
                        values.append(_number(word, header[target_at]))
                    else:
                        target.add(word)
                    if client_at is not None:
                        client.add(_word(row[client_at], header[client_at]))
                    if test_at is not None:
                        test.append(_is_test(row[test_at], header[test_at]))
                except _Bad as error:
                    raise _Bad(str(error), line) from error
        if not number:
            raise _Bad("there are no rows below the names of the columns")
        return _Columns(
            np.frombuffer(features, np.float32).reshape(number, -1),
            target,
            np.frombuffer(values, np.float32) if self.task == "regression" else None,
            client if client_at is not None else None,
            np.frombuffer(test, np.bool_) if test_at is not None else None,
        )

    def _features(self, places: _Places, taken: set[int | None]) -> list[int]:
        """Where the features stand."""
        if self.features is not None:
            return [places.of(name) for name in self.features]
        header = places.header
        found = [at for at in range(len(header)) if at not in taken]
        if not found:
            raise _Bad("there are no columns of features beside those of target, client and test")
        for at in found:
            if not header[at]:
                raise _Bad(f"column {at + 1} of {len(header)} has no name; give it one, or say which are features")
            places.of(header[at])
        return found

    def _standardised(
        self, path: Path, x: NDArray[np.float32], training: NDArray[np.bool_] | slice
    ) -> NDArray[np.float32]:
        """(rows, features), each feature with mean 0 and deviation 1 over the *training* rows."""
        result = np.empty_like(x)
        parts = min(-(-x.size // STANDARDISED_AT_ONCE), max(x.shape[1] // 2, 1))  # a column alone is summed otherwise
        for columns in np.array_split(np.arange(x.shape[1]), parts):  # all at once takes far more memory
            some = slice(int(columns[0]), int(columns[-1]) + 1)
            seen = x[training, some].astype(np.float64)
            changes = np.ptp(seen, axis=0) > 0
            with np.errstate(all="ignore"):
                scale = np.where(changes, 1.0 / np.where(changes, seen.std(axis=0), 1.0), 0.0)
                result[:, some] = ((x[:, some] - seen.mean(axis=0)) * scale).astype(np.float32)
        if not np.isfinite(result).all():
            raise UserError(
                f"{shown(path)}: a column has numbers so far apart that standardise makes them larger than "
                f"{LARGEST:.3g}; check it, or leave standardise out"
            )
        return result

    def _classes(self, path: Path, found: Collection[str]) -> tuple[str, ...]:
        if not 2 <= len(found) <= MOST_CLASSES:
            number = f"{len(found)} different classes" if len(found) > 1 else f"only the class {min(found)!r}"
            hint = "" if len(found) < 2 else "; if it holds numbers, set task to regression"
            raise UserError(
                f"{shown(path)}: the column {self.target!r} has {number}, and from 2 to {MOST_CLASSES} are "
                f"possible{hint}"
            )
        try:
            return tuple(sorted(found, key=lambda word: (int(word), word)))
        except ValueError:
            return tuple(sorted(found))


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
                raise _Bad(f"{len(row)} columns, and the first line names {columns}")
        except (StopIteration, UnicodeDecodeError, csv.Error, RowTooLong, _Bad) as found:
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
            except _Bad as error:
                raise _Bad(str(error), line) from error
    raise AssertionError("a number is bad among others, and good alone")


def _number(cell: str, column: str) -> float:
    try:
        number = math.nan if "_" in cell else float(cell)
    except ValueError:
        number = math.nan
    if not abs(number) <= LARGEST:
        if not cell.strip():
            raise _Bad(f"the cell in the column {column[:30]!r} is empty; fill it with a number, or leave the line out")
        raise _Bad(f"{cell.strip()[:30]!r} in the column {column[:30]!r} must be a number, at most {LARGEST:.3g}")
    return number


def _word(cell: str, column: str) -> str:
    word = cell.strip()
    if not 1 <= len(word) <= LONGEST_NAME:
        said = f"{len(word)} characters" if word else "nothing"
        raise _Bad(f"{said} in the column {column[:30]!r}; write a word of at most {LONGEST_NAME} characters")
    return word


def _is_test(cell: str, column: str) -> bool:
    word = cell.strip().lower()
    if word not in TEST_WORDS:
        raise _Bad(f"{cell.strip()[:30]!r} in the column {column[:30]!r} must be one of {', '.join(TEST_WORDS)}")
    return TEST_WORDS[word]
