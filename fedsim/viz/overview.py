"""Whole figures of one or several runs, from their tables: one figure each, and the overview of who costs what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedsim.viz import figures
from fedsim.viz.bars import bar_rows
from fedsim.viz.names import fitted
from fedsim.viz.series import Looks
from fedsim.viz.shown_figure import ShownFigure
from fedsim.viz.style import RC, looks, plain

__all__ = ["named_class_figures", "named_figures", "overview"]

_CURVES = (
    figures.accuracy_over_time,
    figures.accuracy_over_bytes,
    figures.accuracy_over_rounds,
    figures.loss_over_rounds,
)
_COSTS = (figures.time_by_protocol, figures.traffic_by_protocol)
_DrawBars = Callable[[pd.DataFrame, Axes, Looks], Axes]
_WIDE = 11.0  # inches
_WIDTH = 4.8  # in a column of 3.5 inches, letters are then of 7 points
_ROW = 0.34
_CURVES_INCHES = 3.4
_AROUND_BARS = 1.15
_PANELS_IN_A_ROW = 3
_CLASSES_IN_A_ROW = 4
_CLASS_INCHES = 3.6
_TITLE_LETTERS = 30  # of a line above a panel


def named_figures(rounds: pd.DataFrame, summary: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Each figure of runs with its name; where nothing was learned, only what was spent.

    Tables of several runs have a column ``run``. With more than four runs of several protocols, each run has a panel.
    """
    styles = looks([*summary["protocol"], *rounds["protocol"]])
    with mpl.rc_context(RC):
        for draw in _CURVES if _learned(rounds) else ():
            yield draw.__name__, _curves(draw, rounds, styles)
        for bars in _bars(rounds):
            figure = Figure(figsize=(_WIDTH, _AROUND_BARS + _ROW * bar_rows(summary)), layout="constrained")
            bars(summary, figure.add_subplot(), styles)
            yield bars.__name__, figure
        yield "overview", overview(rounds, summary)


def named_class_figures(device_rounds: pd.DataFrame, protocols: Iterable[str]) -> Iterator[tuple[str, Figure]]:
    """Figures of one run with a panel for each device class, by name.

    *device_rounds* is a table of rounds for a device of each class, and *protocols* are all of the run, in order: each
    looks as in the other figures.
    """
    styles = looks(protocols)
    with mpl.rc_context(RC):
        for draw, name in (
            (figures.accuracy_over_time, "class_accuracy_over_time"),
            (partial(figures.accuracy_over_bytes, sender="a device"), "class_accuracy_over_bytes"),
        ):
            yield name, _by_class(draw, device_rounds, styles)


def overview(rounds: pd.DataFrame, summary: pd.DataFrame) -> ShownFigure:
    """Who costs what and yields what, in one look: curves over time and traffic, and bars that stand side by side."""
    styles = looks([*summary["protocol"], *rounds["protocol"]])
    rows = bar_rows(summary)
    bars, series = _bars(rounds), figures.curves_of(rounds, styles)
    with mpl.rc_context(RC):
        height = _AROUND_BARS + _ROW * rows
        curves = _learned(rounds) and not series.panels
        above = _CURVES_INCHES if curves else 0.0
        below = series.legend_inches(_WIDE) if curves else 0.0
        figure = ShownFigure(figsize=(_WIDE, above + height + below), layout="constrained")
        grid = figure.add_gridspec(1 + curves, 1, height_ratios=[above, height] if curves else None)
        if curves:
            left, right = grid[0].subgridspec(1, 2).subplots(sharey=True, squeeze=False)[0]
            figures.accuracy_over_time(rounds, left, styles, legend=False)
            figures.accuracy_over_bytes(rounds, right, styles, legend=False).set_ylabel("")
            series.legend_below(figure)
        beside = grid[-1].subgridspec(1, len(bars)).subplots(sharey=True, squeeze=False)[0]
        for draw, ax in zip(bars, beside, strict=True):
            draw(summary, ax, styles)
    return figure


def _learned(rounds: pd.DataFrame) -> bool:
    return bool(rounds["loss"].notna().any())


def _bars(rounds: pd.DataFrame) -> tuple[_DrawBars, ...]:
    return (figures.accuracy_by_protocol, *_COSTS) if _learned(rounds) else _COSTS


def _by_class(draw: Callable[..., Axes], rounds: pd.DataFrame, styles: Looks) -> Figure:
    """A panel for each device class, with the legend below."""
    series = figures.curves_of(rounds, styles)
    classes = list(dict.fromkeys(rounds["device_class"]))
    across = min(len(classes), _CLASSES_IN_A_ROW)
    lines = -(-len(classes) // across)
    width = min(_WIDE, _CLASS_INCHES * across)
    figure = Figure(figsize=(width, 2.8 * lines + 0.4 + series.legend_inches(width)), layout="constrained")
    panels = figure.subplots(lines, across, sharey=True, squeeze=False).flat
    titles = fitted(classes, _TITLE_LETTERS)
    for place, (kind, ax) in enumerate(zip(classes, panels, strict=False)):
        draw(rounds[rounds["device_class"] == kind], ax, styles, legend=False)
        title = ax.get_title(loc="left")
        ax.set_title(plain(titles[kind]))
        if place % across:
            ax.set_ylabel("")
    for ax in list(panels):
        ax.set_axis_off()
    figure.suptitle(f"{title}, by device class", x=0.01, horizontalalignment="left", fontweight="bold")
    series.legend_below(figure)
    return figure


def _curves(draw: Callable[..., Axes], rounds: pd.DataFrame, styles: Looks) -> Figure:
    """One figure of curves, with its legend below; a panel for each run where one picture is not enough."""
    series = figures.curves_of(rounds, styles)
    if not series.panels:
        figure = Figure(figsize=(_WIDTH, 3.2 + series.legend_inches(_WIDTH)), layout="constrained")
        draw(rounds, figure.add_subplot(), styles, legend=False)
        series.legend_below(figure)
        return figure
    runs = series.runs
    lines = -(-len(runs) // _PANELS_IN_A_ROW)
    figure = Figure(figsize=(_WIDE, 2.4 * lines + 0.4 + series.legend_inches(_WIDE)), layout="constrained")
    panels = figure.subplots(lines, _PANELS_IN_A_ROW, sharex=True, sharey=True).flat
    titles = fitted(runs, _TITLE_LETTERS)
    for place, (run, ax) in enumerate(zip(runs, panels, strict=False)):
        draw(rounds, ax, styles, legend=False, run=run)
        title, xlabel = ax.get_title(loc="left"), ax.get_xlabel()
        ax.set_title(plain(titles[run]))
        ax.label_outer()
        if place + _PANELS_IN_A_ROW >= len(runs):  # nothing stands below
            ax.tick_params(labelbottom=True)
            ax.set_xlabel(xlabel)
    for ax in list(panels):
        ax.set_axis_off()
    figure.suptitle(title, x=0.01, horizontalalignment="left", fontweight="bold")
    series.legend_below(figure)
    return figure
