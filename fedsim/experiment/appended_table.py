"""A Parquet file that grows by one run after the other, in the order of their positions, before it gets its name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

__all__ = ["AppendedTable"]


class AppendedTable:
    """The file *path*, for tables that are too many to be kept in memory; all have the same columns.

    Until it is whole it has another name, in the folder *scratch*. A table that comes before its turn is laid aside.
    """

    def __init__(self, path: Path, scratch: Path) -> None:
        self._path, self._folder = path, scratch
        self._appended = 0
        """How many tables are in the file: the first ones."""
        self._writer: pq.ParquetWriter | None = None
        self._file: BinaryIO | None = None

    def take(self, position: int, table: pd.DataFrame) -> None:
        """Append the table of that *position*, and those behind it that came before it; or lay it aside."""
        rows = pa.Table.from_pandas(table, preserve_index=False)
        if position > self._appended:
            with self._scratch(position).open("wb") as file:
                feather.write_feather(rows, file)  # unlike Parquet, keeps all types
            return
        self._append(rows)
        while (aside := self._scratch(self._appended)).exists():
            with aside.open("rb") as file:
                self._append(feather.read_table(file).combine_chunks())  # pages are cut where chunks are
            aside.unlink()

    def close(self, *, keep: bool) -> None:
        """No other tables come; to *keep* them, the file gets its name."""
        if self._writer is None or self._file is None:
            return
        try:
            self._writer.close()
            if keep:
                self._file.flush()
                os.fsync(self._file.fileno())
        finally:
            self._file.close()
            self._writer = None
        if keep:
            beside = self._path.with_name(f".{self._path.name}.0.tmp")
            if beside != self._scratch():  # it may be on another disk
                shutil.copyfile(self._scratch(), beside)
            beside.replace(self._path)

    def _append(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._file = self._scratch().open("wb")  # a path could also be taken for an address
            self._writer = pq.ParquetWriter(self._file, rows.schema)
        self._writer.write_table(rows)
        self._appended += 1

    def _scratch(self, position: int = 0) -> Path:
        """Where a table is laid aside; that of the first one, which never is, is the file that all are put into."""
        return self._folder / f".{self._path.name}.{position}.tmp"
