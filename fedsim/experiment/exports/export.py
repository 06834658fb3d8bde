"""Finished runs, handed over to another tool."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fedsim import registry
from fedsim.errors import UserError
from fedsim.experiment.exports.export_folder import check_place, filled_folder
from fedsim.experiment.exports.exported_run import exported_runs
from fedsim.experiment.results import Results
from fedsim.experiment.several_results import load_several
from fedsim.files import is_inside, shown

__all__ = ["export"]


def export(
    results: Sequence[Results | Path | str],
    to: str,
    *,
    out: Path | str | None = None,
    tracking_uri: str | None = None,
) -> Path | str:
    """Hand *results* (or run folders) over to ``tensorboard``, ``mlflow`` or ``parquet``; returns where they are now.

    That is the folder *out*, which is written as a whole or not at all; without it, ``exports/<to>`` in the run folder.
    An export that is there is replaced, anything else refused. With ``mlflow``, *tracking_uri* is a tracking server or
    a database to add the runs to instead; without it, and without *out*, ``MLFLOW_TRACKING_URI`` is. What an earlier
    export of the same run has put there is deleted once the new one is complete.

    Raises `UserError` when there is no finished run in a folder, or a damaged one, or one twice; when the library of
    the tool is not installed; and when *out* cannot be used.
    """
    exporter = registry.load("exporters", to)
    opened = load_several(results)
    runs = exported_runs(opened)
    if tracking_uri is not None and to != "mlflow":
        raise UserError(f"a tracking server is for mlflow, and not for {to}; leave --tracking-uri out")
    if tracking_uri is not None and out is not None:
        raise UserError("--out is for a folder, and --tracking-uri for a server or a database: leave one of them out")
    if to == "mlflow" and out is None and (uri := tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")):
        from fedsim.experiment.exports.mlflow_runs import log_to

        return log_to(uri, runs)
    if out is None and len(results) > 1:
        raise UserError("several run folders go into one export: say where to put it with --out DIR")
    given = results[0]
    place = (
        Path(out) if out is not None else (given.folder if isinstance(given, Results) else Path(given)) / "exports" / to
    )
    for result in opened:
        if is_inside(place, result.folder) and not is_inside(place, result.folder / "exports"):
            problem = f"{shown(place)} is inside the run {shown(result.folder)}"
            raise UserError(
                f"{problem}; choose another folder with --out, or one in {shown(result.folder / 'exports')}"
            )
    check_place(place)
    about = {"to": to, "runs": {run.name: run.results.manifest for run in runs}}
    with filled_folder(place, about) as folder:
        exporter(runs, folder, place)
    return place
