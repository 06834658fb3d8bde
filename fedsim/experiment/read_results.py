"""What a run folder keeps, read back: it may be cut off, changed by hand, of another program, or no file at all.

All that is wrong with it becomes a `UserError` with the file's path. Left out: whether the numbers are those that the
run came to.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from annotated_types import Ge
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from fedsim.errors import UserError
from fedsim.experiment.result_columns import Columns
from fedsim.files import read_text_file, shown
from fedsim.metrics.chosen import chosen_columns
from fedsim.scenario.scalars import message_line, show, show_text
from fedsim.scenario.yaml_reader import MAX_FILE_BYTES, parse_yaml
from fedsim.settings import NonNegative

__all__ = ["AGAIN", "Line", "check_runs", "has_lost", "no_table", "read_manifest", "read_scenario", "read_table"]

AGAIN = "run the scenario again, into another folder"
"""The way out where something is lost."""
MOST_MANIFEST_BYTES = 20_000_000


# -- the manifest -----------------------------------------------------------------------------------------------------


def _shown_as_it_is(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable")
    return text


def _file_name(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{32}", text):
        raise ValueError("must be 32 hexadecimal digits")
    return text


Line = Annotated[str, AfterValidator(_shown_as_it_is)]
"""Text of a manifest that is printed as it is: it has no control characters."""


class _Part(BaseModel):
    """What is read of a manifest has the right type; what else is in it is kept."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Row(_Part):
    """One protocol on one seed."""

    protocol: Line
    seed: int
    cut_short: Line | None = None
    learning_rates: list[Line] = []
    final_weights: dict[Line, Line] = {}
    sim_time_s: NonNegative = 0.0
    real_seconds: NonNegative = 0.0
    rounds: Annotated[int, Ge(0)] = 0


class _Executor(_Part):
    """What trained."""

    name: Line
    torch_device: Line
    precision: Line
    processor: Line | None = None
    workers: Annotated[int, Ge(1)] = 1


class _RetimedFrom(_Part):
    """The run that has learned what this one only times anew."""

    folder: Line
    run: Annotated[str, AfterValidator(_file_name)]


class _Manifest(_Part):
    """Of a run under way or finished."""

    scenario: Line
    status: Literal["running", "finished"]
    runs: list[_Row]
    remarks: list[Line] = []
    sample_shape: list[Annotated[int, Ge(1)]] | None = None
    outputs: Annotated[int, Ge(1)] | None = None
    run: Annotated[str, AfterValidator(_file_name)] = "0" * 32
    store: Line = "store"
    numeric_family: Line | None = None
    executor: _Executor | None = None
    retimed_from: _RetimedFrom | None = None
    classes: Annotated[int, Ge(1)] | None = None
    real_seconds: NonNegative = 0.0
    peak_memory_bytes: Annotated[int, Ge(0)] = 0
    worker_peak_memory_bytes: Annotated[int, Ge(0)] | None = None


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest in the file *path*. Raises `UserError` when there is none, or one that cannot be relied on."""
    text = read_text_file(path, what="a manifest", most_bytes=MOST_MANIFEST_BYTES)
    try:
        manifest: dict[str, Any] = json.loads(text)
        _Manifest.model_validate(manifest)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{shown(path)} is not readable as a manifest{_first_of(error)}; {AGAIN}") from None
    return manifest


def _first_of(error: Exception) -> str:
    """The key that is wrong, where there is one."""
    if not isinstance(error, ValidationError) or not (key := error.errors(include_url=False)[0]["loc"]):
        return ""
    return f" (its key {'.'.join(map(str, key))!r})"


# -- the scenario -----------------------------------------------------------------------------------------------------


def read_scenario(folder: Path) -> tuple[str, dict[str, Any]]:
    """The scenario of the run in *folder*: its text, and what that says as plain data; no code that it names is run.

    Raises `UserError` when the file is lost, or is no YAML.
    """
    path = folder / "scenario.yaml"
    if not path.is_file():
        raise UserError(has_lost(path))
    text = read_text_file(path, what="a scenario", most_bytes=MAX_FILE_BYTES)
    return text, parse_yaml(text, str(path)).data


# -- tables -----------------------------------------------------------------------------------------------------------


def read_table(path: Path, columns: Columns) -> pd.DataFrame:
    """The table in the file *path*, CSV or Parquet by its name.

    Raises `UserError` when there is none, or it is not made of these *columns* and others.
    """
    if not path.is_file():
        raise UserError(has_lost(path))
    try:
        with path.open("rb") as file:  # a path could also be taken for an address
            table = _READERS[path.suffix](file)
        _check(table, columns)
    except (OSError, ValueError) as error:
        raise no_table(path, show_text(getattr(error, "strerror", None) or str(error))) from None
    return table


def check_runs(table: pd.DataFrame, summary: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The *table* of the file *path*. Raises `UserError` when it is of a protocol or a seed that *summary* has not."""
    protocols, runs = set(summary["protocol"]), set(zip(summary["protocol"], summary["seed"], strict=True))
    for protocol, seed in table[["protocol", "seed"]].drop_duplicates().itertuples(index=False):
        if (protocol, seed) not in runs:
            name = f"protocol={show(protocol)}"
            raise no_table(path, f"{name}, seed={seed}" if protocol in protocols else name)
    return table


def has_lost(path: Path) -> str:
    """What to say of a run that the file *path* is no more in the folder of."""
    return f"{shown(path.parent)} has lost its {path.name}; {AGAIN}"


def no_table(path: Path, reason: str) -> UserError:
    """What to say of the file *path* for this *reason*."""
    return UserError(message_line(f"{shown(path)} is no table of a run ({reason}); {AGAIN}"))


def _read_parquet(file: BinaryIO) -> pd.DataFrame:
    try:
        table: pd.DataFrame = pq.ParquetFile(file).read().to_pandas()
    except (OSError, ValueError, pa.ArrowException) as error:
        if getattr(error, "errno", None) is not None:  # it is the disk
            raise
        raise ValueError("it is cut off, or no Parquet file") from None
    return table


def _read_csv(file: BinaryIO) -> pd.DataFrame:
    """Names stay text, also when a protocol is called 1 or NA; an empty cell is not known."""
    content = file.read()
    if not content.endswith(b"\n"):
        raise ValueError("the last line has no end" if content else "it is empty")
    names = dict.fromkeys(("protocol", "link", "true", "predicted", "client"), str)
    try:
        table = pd.read_csv(io.BytesIO(content), dtype=names, keep_default_na=False, na_values=[""])
    except ValueError:
        raise ValueError("it is no CSV file, with as many cells in each line") from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes what is beyond the header for names of rows
        raise ValueError("rows that are longer than the first")
    return table


_READERS: dict[str, Callable[[BinaryIO], pd.DataFrame]] = {".csv": _read_csv, ".parquet": _read_parquet}


def _check(table: pd.DataFrame, columns: Columns) -> None:
    """Raise `ValueError` unless the table has the *columns*; what is not known in any row becomes a number too."""
    chosen = chosen_columns(map(str, table)) if columns.chosen else []
    infinite = {*columns.infinite, *(name for name in chosen if name.startswith(("phm08", "rmse_", "newcomers_rmse_")))}
    numbers = [*columns.numbers, *filter(table.columns.__contains__, columns.optional), *chosen]
    for column in (*columns.text, *columns.whole, *numbers):
        if column not in table:
            raise ValueError(f"no column {column}")
    if columns.has_rows and table.empty:
        raise ValueError("no rows")
    for column in columns.text:
        _check_text(column, table[column].unique(), columns.choices.get(column))
    for column in columns.whole:
        if not (table.empty or pd.api.types.is_integer_dtype(table[column])):
            raise ValueError(f"{column} is no whole number")
    for column in numbers:
        if table[column].isna().all():
            table[column] = math.nan
        _check_numbers(column, table[column].dropna(), finite=column not in infinite)
    if columns.complete:
        _check_complete(table, columns.complete)
    if columns.key and table.duplicated(["protocol", "seed", *columns.key]).any():
        raise ValueError("rows stand twice")


def _check_text(column: str, values: Iterable[object], choices: tuple[str, ...] | None) -> None:
    for value in values:
        if not isinstance(value, str) or not value.isprintable() or (choices and value not in choices):
            raise ValueError(f"{column}={show(value)}")


def _check_numbers(column: str, values: pd.Series[Any], *, finite: bool) -> None:
    if not pd.api.types.is_numeric_dtype(values):
        raise ValueError(f"{column} is no number")
    if (values < 0).any() or (finite and (values == math.inf).any()):
        raise ValueError(f"{column} is below 0 or infinite")


def _check_complete(table: pd.DataFrame, columns: tuple[str, ...]) -> None:
    runs = ["protocol", "seed"]
    expected = table.groupby(runs).ngroups * math.prod(table[column].nunique() for column in columns)
    if len(table) != expected or table.duplicated([*runs, *columns]).any():
        raise ValueError("rows are missing, or stand twice")
