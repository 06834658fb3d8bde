"""Figures of finished runs, as files and to look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, TypeVar

import pandas as pd

from fedsim.errors import UserError
from fedsim.experiment.compare import compare, run_names
from fedsim.experiment.compare_device_classes import device_rounds
from fedsim.experiment.explain import has_times, parts_of_rounds
from fedsim.experiment.results import Results
from fedsim.experiment.several_results import check_once, load_several
from fedsim.experiment.sweep.results import SweepResults
from fedsim.files import shown
from fedsim.viz.confusion_figures import named_confusion_figures
from fedsim.viz.front_figures import front_figure
from fedsim.viz.names import names_apart
from fedsim.viz.overview import named_class_figures, named_figures, overview
from fedsim.viz.save import save_figure
from fedsim.viz.shown_figure import ShownFigure
from fedsim.viz.sweep_figures import sweep_figures
from fedsim.viz.time_figures import named_time_figures

__all__ = ["compared_runs", "plot", "save_figures", "save_sweep_figures", "together"]

_Drawn = TypeVar("_Drawn")


def plot(results: Sequence[Results | Path | str]) -> ShownFigure:
    """The overview of several runs (their results, or their folders) in one figure; `Results.plot` has that of one.

    It is a matplotlib figure, which a notebook shows. Raises `UserError` when there is no finished run in a folder,
    when there are no results, and when a run is among them twice.
    """
    opened = load_several(results)
    return overview(together(opened, "rounds"), together(opened, "summary"))


def save_figures(results: Sequence[Results], folder: Path, format: Literal["png", "svg", "pdf"] = "png") -> list[Path]:
    """Draw *results* into files of *folder*, one for each figure and ``overview``; returns their paths.

    Where several protocols or runs have a score, ``front`` shows which are worth their time, and their bytes.

    A run whose clients' own models were scored, and whose devices are of several classes, has figures by class too;
    among several runs their names end in the run's number. So do those of what was taken for what, of which each run
    has its own, where that was counted; and those of the load of links over time.

    Several results share the figures, where a run's name is without the words that all names begin with. A protocol has
    one colour in all runs. Where nothing was learned, there is only what was spent. Raises `UserError` for no results,
    and when a run is among them twice.
    """
    rounds, summary = together(results, "rounds"), together(results, "summary")
    drawn = [named_figures(rounds, summary)]
    if timed := [result for result in results if has_times(result, "critical_path.csv")]:
        drawn.append(named_time_figures(parts_of_rounds(timed), pd.DataFrame()))
    protocols = dict.fromkeys([*summary["protocol"], *rounds["protocol"]])
    for number, result in enumerate(results, start=1):
        ending = f"-{number}" if len(results) > 1 else ""
        of_classes = device_rounds(result)
        if len(of_classes):
            drawn.append(_ending_in(ending, named_class_figures(of_classes, protocols)))
        if has_times(result, "link_loads.csv"):
            drawn.append(_ending_in(ending, named_time_figures(parts_of_rounds([]), result.link_loads)))
        if (result.folder / "confusion.csv").exists():
            drawn.append(_ending_in(ending, named_confusion_figures(result.confusion, protocols)))
    if (front := front_figure(compared_runs(results), protocols)) is not None:
        drawn.append(iter([("front", front)]))
    folder.mkdir(parents=True, exist_ok=True)
    return [save_figure(figure, folder / f"{name}.{format}") for name, figure in chain.from_iterable(drawn)]


def compared_runs(results: Sequence[Results]) -> pd.DataFrame:
    """The comparison of all of them, where a run is called as in the figures."""
    compared = compare(results)
    if len(results) == 1:
        return compared.drop(columns="run")
    names = run_names(results)
    return compared.replace({"run": dict(zip(names, names_apart(names), strict=True))})


def save_sweep_figures(results: SweepResults, folder: Path, format: Literal["png", "svg", "pdf"] = "png") -> list[Path]:
    """Draw a sweep into files of *folder*: lines and heat maps over the varied keys; returns their paths.

    Raises `UserError` when no key has several values.
    """
    figures = list(sweep_figures(results.compare(), results.manifest.short_keys))
    if not figures:
        raise UserError(f"{shown(results.folder)}: no key has several values, so there is nothing to draw over")
    folder.mkdir(parents=True, exist_ok=True)
    return [save_figure(figure, folder / f"{name}.{format}") for name, figure in figures]


def _ending_in(ending: str, figures: Iterable[tuple[str, _Drawn]]) -> Iterator[tuple[str, _Drawn]]:
    return ((f"{name}{ending}", figure) for name, figure in figures)


def together(results: Sequence[Results], table: Literal["rounds", "summary"]) -> pd.DataFrame:
    """This table of all *results*; of several runs, with a column ``run``, without the words that all names begin with.

    Raises `UserError` for no results, and when a run is among them twice.
    """
    if not results:
        raise UserError("no run is there to draw; give at least one")
    tables: list[pd.DataFrame] = [getattr(result, table) for result in results]
    if len(tables) > 1:
        check_once(results)
        names = names_apart(run_names(results))
        tables = [part.assign(run=name) for name, part in zip(names, tables, strict=True)]
    return pd.concat(tables, ignore_index=True)
