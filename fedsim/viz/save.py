"""Figures as files: equal results give equal bytes, and matplotlib's global state stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedsim.experiment.compare import run_names
from fedsim.experiment.results import Results
from fedsim.viz import figures
from fedsim.viz.style import RC, Look, looks

__all__ = ["save_figure", "save_figures"]

_Draw = Callable[[pd.DataFrame, Axes, dict[str, Look]], Axes]

_LEARNING: tuple[_Draw, ...] = (
    figures.accuracy_over_time,
    figures.accuracy_over_bytes,
    figures.accuracy_over_rounds,
    figures.loss_over_rounds,
)
_COSTS: tuple[_Draw, ...] = (figures.traffic_by_protocol, figures.time_by_protocol)


def save_figures(results: Sequence[Results], folder: Path, format: Literal["png", "svg"] = "png") -> list[Path]:
    """Draw *results* into files of *folder*, one for each figure and ``overview``; returns their paths.

    Several results share the figures: their protocols are then called ``run: protocol``. Where nothing was learned,
    there is only what was spent.
    """
    rounds, summary = _together(results, "rounds"), _together(results, "summary")
    styles = looks([*summary["protocol"], *rounds["protocol"]])
    learned = bool(rounds["loss"].notna().any())
    tables = {**dict.fromkeys(_LEARNING if learned else (), rounds), **dict.fromkeys(_COSTS, summary)}
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context(RC):
        for draw, table in tables.items():
            figure = Figure(figsize=(6.4, 4.0), layout="constrained")
            draw(table, figure.add_subplot(), styles)
            paths.append(save_figure(figure, folder / f"{draw.__name__}.{format}"))
        paths.append(save_figure(_overview(tables, styles), folder / f"overview.{format}"))
    return paths


def _overview(tables: dict[_Draw, pd.DataFrame], styles: dict[str, Look]) -> Figure:
    draws = [draw for draw in (*_LEARNING[:2], *_COSTS) if draw in tables]
    rows = len(draws) // 2
    figure = Figure(figsize=(11.0, 3.7 * rows), layout="constrained")
    for draw, ax in zip(draws, figure.subplots(rows, 2, squeeze=False).flat, strict=True):
        draw(tables[draw], ax, styles)
    return figure


def save_figure(figure: Figure, path: Path) -> Path:
    """Write *figure* as the PNG, SVG or PDF that *path* ends in, without the date; returns *path*."""
    FigureCanvasAgg(figure)
    dates = {".svg": "Date", ".pdf": "CreationDate"}
    figure.savefig(path, metadata={dates.get(path.suffix.lower(), "Software"): None})
    return path


def _together(results: Sequence[Results], table: Literal["rounds", "summary"]) -> pd.DataFrame:
    tables: list[pd.DataFrame] = [getattr(result, table) for result in results]
    if len(tables) > 1:
        names = run_names(results)
        tables = [
            part.assign(protocol=f"{name}: " + part["protocol"]) for name, part in zip(names, tables, strict=True)
        ]
    return pd.concat(tables, ignore_index=True)
