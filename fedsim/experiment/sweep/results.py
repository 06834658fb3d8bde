"""What a finished sweep left: its table, and the results of each point."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fedsim.errors import UserError, nearest
from fedsim.experiment.compare import Budget, compare, run_names
from fedsim.experiment.results import Results
from fedsim.experiment.shown_results import sweep_as_html
from fedsim.experiment.sweep_manifest import POINTS, SweepManifest, finished_sweep, is_sweep, load_points, read_sweep
from fedsim.experiment.varied_keys import column_of
from fedsim.files import shown
from fedsim.viz.tables import many

if TYPE_CHECKING:
    from fedsim.viz.shown_figure import ShownFigure

__all__ = ["SweepResults", "load_sweep", "sweep_of", "sweep_table"]

Cell = str | int | float | bool


@dataclass(frozen=True, repr=False)
class SweepResults:
    """A finished sweep. Tables are read when they are first asked for.

    As the last line of a notebook's cell it shows the comparison of its points.
    """

    folder: Path

    @cached_property
    def manifest(self) -> SweepManifest:
        """Which points it has, and their values."""
        return read_sweep(self.folder)

    @property
    def keys(self) -> list[str]:
        """What is varied: paths, as in ``--set``."""
        return list(self.manifest.keys)

    @cached_property
    def points(self) -> list[tuple[dict[str, object], Results]]:
        """The values of each point by key, and its results; in the order of the table."""
        results = load_points(self.folder, self.manifest)
        return [
            (dict(zip(self.keys, point.values, strict=True)), result)
            for point, result in zip(self.manifest.points, results, strict=True)
        ]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each point, protocol, seed and accounting, as in ``sweep.csv``.

        A column for each varied key, ``point``, and those of `Results.summary`.
        """
        values = [point.values for point in self.manifest.points]
        return sweep_table(self.keys, values, [results for _, results in self.points])

    def compare(self, *, at: Budget | None = None, target: float | None = None) -> pd.DataFrame:
        """Means over seeds, as `fedsim.compare` has them, with a column for each varied key before all others.

        Columns of keys are named briefly: ``radio.profile`` for ``network.cell.radio.profile``.
        """
        results = [result for _, result in self.points]
        compared = compare(results, at=at, target=target)
        of_run = dict(zip(run_names(results), self.manifest.points, strict=True))
        columns = {
            short: [cell(of_run[run].values[position]) for run in compared["run"]]
            for position, short in enumerate(self.manifest.short_keys)
        }
        return pd.concat([pd.DataFrame(columns, index=compared.index), compared], axis="columns")

    def plot(self, name: str | None = None) -> ShownFigure:
        """One of the figures that ``fedsim plot`` saves, such as ``heatmap-time``. Without *name*, the first.

        Raises `UserError` when there is none of that name, or no key has several values.
        """
        from fedsim.viz.sweep_figures import sweep_figures  # with matplotlib

        figures = dict(sweep_figures(self.compare(), self.manifest.short_keys))
        if not figures:
            raise UserError(f"{shown(self.folder)}: no key has several values to draw something over")
        if name is not None and name not in figures:
            raise UserError(f"there is no figure {name!r}{nearest(name, figures)} (figures: {', '.join(figures)})")
        return figures[name or next(iter(figures))]

    @property
    def remarks(self) -> list[str]:
        """What could be misread in the table."""
        families: dict[str, int] = {}
        for _, result in self.points:
            if (family := result.manifest.get("numeric_family")) is not None:
                families[family] = families.get(family, 0) + 1
        if len(families) < 2:
            return []
        said = "; ".join(f"{many(count, 'point')} with {family}" for family, count in families.items())
        return [
            f"the points were trained with different arithmetic ({said}), so small differences between them may come "
            "from that; run all of them with the same --executor, --precision and --torch-device into another folder"
        ]

    def __repr__(self) -> str:
        return f"SweepResults of {len(self.manifest.points)} points in {shown(self.folder)}"

    def _repr_html_(self) -> str | None:
        manifest = self.manifest
        try:
            compared, remarks = self.compare(), self.remarks
        except UserError:  # what is lost is said when it is asked for
            return None
        count = len(manifest.points)
        return sweep_as_html(manifest.scenario, self.folder, count, compared, manifest.short_keys, remarks)


def load_sweep(folder: Path | str) -> SweepResults:
    """The results of a sweep. Raises `UserError` when there is no finished one in *folder*."""
    results = SweepResults(Path(folder))
    finished_sweep(results.folder)
    return results


def sweep_of(results: Sequence[Results]) -> SweepResults | None:
    """The sweep whose points *results* are: all of its points, and nothing else. None where there is none."""
    folders = {result.folder.resolve() for result in results}
    homes = {folder.parent.parent for folder in folders}
    home = homes.pop()
    if homes or not is_sweep(home):
        return None
    try:
        sweep = load_sweep(home)
        points = {home / POINTS / point.key for point in sweep.manifest.points}
    except UserError:  # they are finished runs all the same
        return None
    return sweep if points == folders else None


def sweep_table(keys: Sequence[str], values: Sequence[Sequence[object]], results: Sequence[Results]) -> pd.DataFrame:
    """The tidy table of some points, whose *values* of the *keys* these are."""
    tables = []
    for of_point, result in zip(values, results, strict=True):
        first = {column_of(key): cell(value) for key, value in zip(keys, of_point, strict=True)}
        first["point"] = result.folder.name
        summary = result.summary
        tables.append(pd.concat([pd.DataFrame(first, index=summary.index), summary], axis="columns"))
    return pd.concat(tables, ignore_index=True)


def cell(value: object) -> Cell:
    """A value of a key in a table: a number, a truth value or text as it is, everything else as JSON.

    >>> cell(0.1), cell("lte_m_m1"), cell([16, 32]), cell(None)
    (0.1, 'lte_m_m1', '[16, 32]', 'null')
    """
    return value if isinstance(value, str | int | float | bool) else json.dumps(value)
