"""Figures of finished runs, as files and to look at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import matplotlib as mpl
import pandas as pd

from fedsim.experiment.compare import run_names
from fedsim.experiment.results import Results, load_several
from fedsim.viz.overview import named_figures, overview
from fedsim.viz.save import save_figure
from fedsim.viz.series import names_apart
from fedsim.viz.shown_figure import ShownFigure
from fedsim.viz.style import RC

__all__ = ["plot", "save_figures"]


def plot(results: Sequence[Results | Path | str]) -> ShownFigure:
    """The overview of several runs (their results, or their folders) in one figure; `Results.plot` has that of one.

    It is a matplotlib figure, which a notebook shows. Raises `UserError` when there is no run, or no finished one in a
    folder.
    """
    opened = load_several(results)
    return overview(_together(opened, "rounds"), _together(opened, "summary"))


def save_figures(results: Sequence[Results], folder: Path, format: Literal["png", "svg", "pdf"] = "png") -> list[Path]:
    """Draw *results* into files of *folder*, one for each figure and ``overview``; returns their paths.

    Several results share the figures, where a run's name is without the words that all names begin with. A protocol has
    one colour in all runs. Where nothing was learned, there is only what was spent.
    """
    drawn = named_figures(_together(results, "rounds"), _together(results, "summary"))
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(RC):
        return [save_figure(figure, folder / f"{name}.{format}") for name, figure in drawn]


def _together(results: Sequence[Results], table: Literal["rounds", "summary"]) -> pd.DataFrame:
    tables: list[pd.DataFrame] = [getattr(result, table) for result in results]
    if len(tables) > 1:
        names = names_apart(run_names(results))
        tables = [part.assign(run=name) for name, part in zip(names, tables, strict=True)]
    return pd.concat(tables, ignore_index=True)
