"""A table of one's own: a CSV file with a line of column names, a target, and numbers.

Left out: missing values (a table with gaps is refused), columns of words as features, and other separators.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import MinLen
from numpy.typing import NDArray

from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.reading.csv_columns import LARGEST, Purposes, read_columns
from fedsim.data.sampled import SampledDataset
from fedsim.data.source import SourcePath, locate
from fedsim.data.target import target_in
from fedsim.errors import Misfit, UserError
from fedsim.files import shown
from fedsim.settings import Name, Several, key_rule

__all__ = ["Table"]

WHAT = "a CSV file with your samples, one in a line, is needed"
STANDARDISED_AT_ONCE = 1_000_000
MOST_CLASSES = 1000
FLOAT_BYTES = 4


class Table(SampledDataset):
    """Your own table: a CSV file with columns of numbers, and one with the class or the number to predict."""

    name: Literal["csv"] = "csv"
    path: SourcePath
    """The file. Its first line names the columns."""
    target: Name
    """The column that models learn to tell."""
    task: Literal["classification", "regression"] = "classification"
    """Whether *target* holds classes (any words; sorted, by value if all are whole numbers) or numbers."""
    unit: Name | None = None
    """The unit of numbers in *target*, in small letters, such as cycles or mm; results then have the error in it."""
    features: Annotated[Several[Name], MinLen(1)] | None = None
    """The columns that models see, in this order; left out, all that have no other purpose, as they stand."""
    client: Name | None = None
    """The column that says whose a sample is, in any words; with partition natural these are the clients."""
    test: Name | None = None
    """The column that says which samples are set aside for tests: test, true or 1, and train, false or 0."""
    standardise: bool = False
    """Whether each feature is brought to mean 0 and deviation 1 over all rows that are not set aside by the column
    *test*; one that never changes becomes 0."""

    @key_rule
    def _units_are_of_numbers(self) -> None:
        target_in(self.unit, of_values=self.task == "regression")

    @key_rule
    def _apart(self) -> None:
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

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (features,), four bytes for each number and for the target on the wire."""
        path = locate(self.path, what=WHAT)
        regression = self.task == "regression"
        columns = read_columns(path, Purposes(self.target, regression, self.features, self.client, self.test))
        x, test = columns.features, columns.test
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
        return RawDataset(
            x=self._standardised(path, x, slice(None) if test is None else ~test) if self.standardise else x,
            y=y,
            classes=None if class_names is None else len(class_names),
            class_names=class_names or (),
            target=target_in(self.unit, of_values=regression),
            sample_bytes=float(FLOAT_BYTES * (x.shape[1] + 1)),
            owner=owner,
            owner_names=names,
            test=test,
        )

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
