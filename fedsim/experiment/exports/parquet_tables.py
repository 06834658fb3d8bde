"""The tables of several runs as one Parquet file each, for pandas, polars, DuckDB, Spark and others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fedsim.errors import UserError, in_short
from fedsim.experiment.exports.exported_run import ExportedRun
from fedsim.experiment.read_results import AGAIN
from fedsim.experiment.results import Results

__all__ = ["METADATA", "parquet"]

METADATA = b"fedsim"
"""The key of a file's metadata that has the provenance: JSON."""
ALWAYS = ("rounds", "summary")
TIMES = ("critical_path", "critical_pieces", "stragglers", "link_loads")
TABLES = (*ALWAYS, "links", *TIMES, "groups", "device_classes", "confusion", "transfers")


def parquet(runs: Sequence[ExportedRun], folder: Path, place: Path) -> None:
    """One Parquet file for each table, of all runs together: ``rounds.parquet``, ``summary.parquet``, ...

    Columns are those of the run folder, units at the end of their names, behind a column ``run``; what is not known is
    null. The metadata of each file has the scenario and the manifest of each run.
    """
    provenance = {METADATA: _provenance(runs)}
    for name in TABLES:
        schemas = [table.schema for table in _tables(runs, name)]
        if not schemas:
            continue
        schema = _unified(name, schemas).with_metadata(provenance)
        with (folder / f"{name}.parquet").open("wb") as file, pq.ParquetWriter(file, schema) as writer:
            for table in _tables(runs, name):
                writer.write_table(_with_columns(table, schema))


def _tables(runs: Sequence[ExportedRun], name: str) -> Iterator[pa.Table]:
    """The table *name* of each run that has it, one at a time in memory: transfers are many."""
    for run in runs:
        files = [run.results.folder / f"{name}.{ending}" for ending in ("parquet", "csv")]
        if name in ALWAYS or any(file.exists() for file in files):
            table: pd.DataFrame = getattr(Results(run.results.folder), name)
            table.insert(0, "run", run.name)
            yield pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata()


def _unified(name: str, schemas: Sequence[pa.Schema]) -> pa.Schema:
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowTypeError as error:
        raise UserError(f"the runs cannot share a table of {name}: {in_short(error)}; export them apart") from None


def _with_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """*table* with the columns of *schema*, null where it has none."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _provenance(runs: Sequence[ExportedRun]) -> bytes:
    """Of each run, the text of its scenario and what its manifest says."""
    try:
        return json.dumps(
            {run.name: {"scenario": run.scenario_text, "manifest": run.results.manifest} for run in runs},
            allow_nan=False,
        ).encode()
    except ValueError:
        raise UserError(f"the manifest of a run has a number that JSON does not know; {AGAIN}") from None
