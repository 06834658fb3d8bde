"""A table of one's own: a CSV file with a line of column names, a target, and numbers.

Left out: missing values (a table with gaps is refused), columns of words as features, and other separators.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import MinLen
from numpy.typing import NDArray
from pydantic import model_validator

from fedsim.data.pile import Clients, Pile
from fedsim.data.sampled import SampledDataset
from fedsim.data.settings import Generators
from fedsim.data.source import SourcePath, locate
from fedsim.errors import Misfit, UserError, nearest, some
from fedsim.files import read_text_file, shown
from fedsim.settings import LONGEST_NAME, Name, Several

if TYPE_CHECKING:
    from _csv import Reader

__all__ = ["Table"]

WHAT = "a CSV file with your samples, one in a line, is needed"
MOST_BYTES = 500_000_000
LONGEST_ROW = 16_000_000
"""Characters of a row: a million columns or so."""
LINE = re.compile(r"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+\Z")
MOST_CLASSES = 1000
FLOAT_BYTES = 4
LARGEST = float(np.finfo(np.float32).max)
TEST_WORDS = {"0": False, "false": False, "train": False, "1": True, "true": True, "test": True}


class _Bad(Exception):
    """What is wrong with a line."""


@dataclass(frozen=True, eq=False)
class _Columns:
    """What a table holds, as text where it is not yet known to be numbers."""

    features: NDArray[np.float32]
    """(rows, features)"""
    target: list[str]
    client: list[str] | None
    test: list[bool] | None


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


class _Lines:
    """The lines of a text, one by one; those of one row, which quotes may join, have at most `LONGEST_ROW` characters.

    A row's cells take many times the memory of its text, so that a row without an end must not be parsed.
    """

    def __init__(self, text: str) -> None:
        self._matches = LINE.finditer(text)
        self._row = 0

    def __iter__(self) -> Iterator[str]:
        for match in self._matches:
            self._row += match.end() - match.start()
            if self._row > LONGEST_ROW:
                raise _Bad(f"a row has more than {LONGEST_ROW} characters, and each may have so many at most")
            yield match[0]

    def next_row(self) -> None:
        """A new row begins."""
        self._row = 0


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
        test = None if columns.test is None else np.array(columns.test, bool)
        if test is not None and test.all():
            raise UserError(f"{shown(path)}: the column {self.test!r} sets all rows aside for tests; some must be left")
        owner, names = _numbered(columns.client) if columns.client is not None else (None, ())
        if self.task == "regression":
            y, class_names = np.array([float(cell) for cell in columns.target], np.float32), None
        else:
            class_names = self._classes(path, columns.target)
            place = {label: at for at, label in enumerate(class_names)}
            y = np.array([place[label] for label in columns.target], np.int64)
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
        text = read_text_file(path, what="a CSV file", most_bytes=MOST_BYTES)
        lines = _Lines(text)
        rows = csv.reader(lines, strict=True)
        try:
            return self._parse(rows, lines)
        except (_Bad, csv.Error) as error:
            hint = "; is this a CSV file?" if isinstance(error, csv.Error) else ""
            raise UserError(f"{shown(path)}:{max(rows.line_num, 1)}: {error}{hint}") from error

    def _parse(self, rows: Reader, lines: _Lines) -> _Columns:
        header = [name.strip() for name in next(rows, [])]
        lines.next_row()
        if not any(header):
            raise _Bad("must name the columns, and is empty")
        places = _Places(header)
        target_at = places.of(self.target)
        client_at, test_at = (None if name is None else places.of(name) for name in (self.client, self.test))
        features_at = self._features(places, {target_at, client_at, test_at})
        features: list[NDArray[np.float32]] = []
        target: list[str] = []
        client: list[str] = []
        test: list[bool] = []
        for row in rows:
            lines.next_row()
            if not row:
                continue
            if len(row) != len(header):
                raise _Bad(f"{len(row)} columns, and the first line names {len(header)}")
            numbers = [_number(row[at], header[at]) for at in features_at]
            features.append(np.array(numbers, np.float32))
            target.append(_word(row[target_at], header[target_at]))
            if self.task == "regression":
                _number(row[target_at], header[target_at])
            if client_at is not None:
                client.append(_word(row[client_at], header[client_at]))
            if test_at is not None:
                test.append(_is_test(row[test_at], header[test_at]))
        if not features:
            raise _Bad("there are no rows below the names of the columns")
        return _Columns(
            np.array(features),
            target,
            client if client_at is not None else None,
            test if test_at is not None else None,
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
        seen = x[training].astype(np.float64)
        changes = np.ptp(seen, axis=0) > 0
        with np.errstate(all="ignore"):
            scale = np.where(changes, 1.0 / np.where(changes, seen.std(axis=0), 1.0), 0.0)
            result: NDArray[np.float32] = ((x - seen.mean(axis=0)) * scale).astype(np.float32)
        if not np.isfinite(result).all():
            raise UserError(
                f"{shown(path)}: a column has numbers so far apart that standardise makes them larger than "
                f"{LARGEST:.3g}; check it, or leave standardise out"
            )
        return result

    def _classes(self, path: Path, target: Sequence[str]) -> tuple[str, ...]:
        found = set(target)
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


def _numbered(words: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """(samples,) numbers from 0 for *words*, and the different words in their order; one long word costs no other."""
    names = tuple(sorted(set(words)))
    number = {name: at for at, name in enumerate(names)}
    return np.array([number[word] for word in words], np.int64), names


def _is_test(cell: str, column: str) -> bool:
    word = cell.strip().lower()
    if word not in TEST_WORDS:
        raise _Bad(f"{cell.strip()[:30]!r} in the column {column[:30]!r} must be one of {', '.join(TEST_WORDS)}")
    return TEST_WORDS[word]
