"""Figures of a sweep: lines of a metric over a varied key, and a heat map over two.

They are drawn from the means over seeds, `SweepResults.compare`, whose first columns are the varied keys. Of several
keys the first ones that have numbers, else the first ones at all, are the axes; each combination of the others has a
panel (lines) or a figure (heat map) of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import FixedLocator, NullLocator

from fedsim.viz.axes import is_logarithmic
from fedsim.viz.human import number
from fedsim.viz.names import fitted, shortened
from fedsim.viz.series import Looks
from fedsim.viz.shown_figure import ShownFigure
from fedsim.viz.style import DARK, RC, looks, plain
from fedsim.viz.sweep_panels import (
    MOST_LETTERS,
    MOST_PANELS,
    Metric,
    drawn_metrics,
    drawn_rows,
    is_numeric,
    name_of,
    panels_by,
    sorted_values,
)

__all__ = ["MOST_FIGURES", "sweep_figures"]

MOST_FIGURES = 40
_PANEL_INCHES = 3.1
_CELL_INCHES = 0.95
_MOST_TEXT_CELLS = 200  # beyond, numbers in cells cannot be read
_LEAST_INCHES = 5.6
_LEGEND_LETTERS, _LETTERS_PER_INCH, _HANDLE_LETTERS = 36, 11.5, 7


def sweep_figures(compared: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[str, ShownFigure]]:
    """Name and figure of each metric that any row has, by *keys*: ``lines-accuracy``, ``heatmap-accuracy``.

    Lines need a key with several values, a heat map two. At most `MOST_FIGURES` are drawn.
    """
    with mpl.rc_context(RC):
        yield from islice(_figures(*drawn_rows(compared, keys)), MOST_FIGURES)


def _figures(events: pd.DataFrame, varied: Sequence[str]) -> Iterator[tuple[str, ShownFigure]]:
    if not varied:
        return
    styles = looks(events["protocol"])
    for metric in drawn_metrics(events):
        yield f"lines-{metric.name}", _lines(events, varied[0], varied[1:], metric, styles)
        if len(varied) > 1:
            for position, (rest, part) in enumerate(panels_by(events, varied[2:]), start=1):
                ending = f"-{position}" if varied[2:] else ""
                yield f"heatmap-{metric.name}{ending}", _heat_map(part, varied[0], varied[1], metric, rest)


# -- lines ------------------------------------------------------------------------------------------------------------


def _lines(events: pd.DataFrame, key: str, others: Sequence[str], metric: Metric, styles: Looks) -> ShownFigure:
    """A panel for each combination of the *others*: the metric of each protocol over the values of *key*."""
    panels = list(panels_by(events, others))[:MOST_PANELS]
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    unit, label = metric.unit(events)
    width = max(_LEAST_INCHES, _PANEL_INCHES * columns + 0.8)
    figure = ShownFigure(figsize=(width, 2.6 * rows + 1.3), layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)).ravel()
    places = _Places(events[key])
    for ax, (said, part) in zip(grid, panels, strict=False):
        for protocol, look in styles.items():
            of_protocol = part[part["protocol"] == protocol].copy()
            of_protocol["x"] = [places.of(value) for value in of_protocol[key]]
            of_protocol = of_protocol.sort_values("x")
            ax.errorbar(
                of_protocol["x"],
                of_protocol[f"{metric.column}_mean"] / unit,
                yerr=of_protocol[f"{metric.column}_half_width"].fillna(0.0) / unit,
                color=look.colour,
                linestyle=look.line,
                marker=look.marker,
                markersize=4.5,
                capsize=2.5,
                label=plain(fitted([protocol], _LEGEND_LETTERS)[protocol]),
            )
        places.label(ax)
        if said:
            ax.set_title(plain(said), fontsize=9.5, fontweight="normal")
    for ax in grid[len(panels) - columns : len(panels)]:
        ax.tick_params(labelbottom=True)  # also where nothing stands below it
        ax.set_xlabel(plain(key))
    for ax in grid[len(panels) :]:
        ax.set_axis_off()
    left_out = len(list(panels_by(events, others))) - len(panels)
    notes = ["bars: 95 % interval over seeds"] * bool((events["n"] > 1).any())
    notes += [f"{left_out} more panels are left out"] * bool(left_out)
    figure.suptitle(plain(f"{metric.title} over {key}"), x=0.01, ha="left", fontsize=11, fontweight="bold")
    figure.supylabel(label, fontsize=9.5, color=DARK)
    handles, labels = grid[0].get_legend_handles_labels()
    across = max(1, int(width * _LETTERS_PER_INCH // (max(map(len, labels)) + _HANDLE_LETTERS)))
    figure.legend(handles, labels, loc="outside lower center", ncols=min(across, len(labels)), title="; ".join(notes))
    return figure


class _Places:
    """Where the values of a key stand on an axis: numbers as they are, everything else side by side."""

    def __init__(self, values: pd.Series[float]) -> None:
        self._numeric = is_numeric(values)
        self._values = sorted_values(values)
        self._logarithmic = self._numeric and is_logarithmic(values.min(), values)

    def of(self, value: object) -> float:
        """Where it is."""
        return float(value) if self._numeric else float(self._values.index(value))  # type: ignore[arg-type]

    def label(self, ax: Axes) -> None:
        """Mark the values on the x axis of *ax*."""
        if self._logarithmic:
            ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_locator(FixedLocator([self.of(value) for value in self._values]))
        names = _value_names(self._values)
        ax.set_xticklabels(
            names, rotation=30 if max(map(len, names)) > 6 else 0, ha="right" if max(map(len, names)) > 6 else "center"
        )
        ax.margins(x=0.08)


# -- heat maps --------------------------------------------------------------------------------------------------------


def _heat_map(events: pd.DataFrame, x: str, y: str, metric: Metric, said: str) -> ShownFigure:
    """A panel for each protocol: a cell for each value of *x* and *y*, with its mean."""
    protocols = list(dict.fromkeys(events["protocol"]))
    across, down = (sorted_values(events[key]) for key in (x, y))
    unit, label = metric.unit(events)
    means = events[f"{metric.column}_mean"] / unit
    finite = means[np.isfinite(means)]
    logarithmic = is_logarithmic(finite.min(), finite)
    shades = (LogNorm if logarithmic else Normalize)(finite.min(), finite.max())
    columns = min(3, len(protocols))
    rows = -(-len(protocols) // columns)
    width, height = max(2.4, _CELL_INCHES * len(across)), max(1.2, 0.45 * len(down))
    figure = ShownFigure(figsize=(columns * width + 2.6, rows * (height + 0.9) + 1.0), layout="constrained")
    grid = np.atleast_1d(figure.subplots(rows, columns, squeeze=False)).ravel()
    for ax, protocol in zip(grid, protocols, strict=False):
        cells = np.full((len(down), len(across)), math.nan)
        for row in events[events["protocol"] == protocol].to_dict("records"):
            cells[down.index(row[y]), across.index(row[x])] = row[f"{metric.column}_mean"] / unit
        ax.imshow(cells, cmap="cividis", norm=shades, aspect="auto")
        ax.grid(visible=False)
        names = _value_names(across)
        ax.set_xticks(range(len(across)), names, rotation=30 if max(map(len, names)) > 8 else 0)
        ax.set_yticks(range(len(down)), _value_names(down))
        ax.set(title=plain(shortened(protocol)), xlabel=plain(x), ylabel=plain(y))
        if cells.size <= _MOST_TEXT_CELLS:
            _write(ax, cells, shades)
    for ax in grid[len(protocols) :]:
        ax.set_axis_off()
    of_the_others = f" ({said})" if said else ""
    figure.suptitle(plain(f"{metric.title}{of_the_others}"), x=0.01, ha="left", fontsize=11, fontweight="bold")
    image = next(ax for ax in grid if ax.images).images[0]
    bar = figure.colorbar(image, ax=list(grid), shrink=0.9)
    scale_name = " (logarithmic)" if logarithmic else ""
    bar.set_label(f"{label}, mean over seeds{scale_name}")
    return figure


def _write(ax: Axes, cells: np.ndarray, shades: Normalize) -> None:
    """The number in each cell, in black or white; a dash where there is none."""
    shade = colormaps["cividis"]
    for (row, column), value in np.ndenumerate(cells):
        known = math.isfinite(value)
        light = known and np.dot(shade(shades(value))[:3], (0.299, 0.587, 0.114)) > 0.5
        ax.text(
            column,
            row,
            number(value) if known else "–",
            ha="center",
            va="center",
            fontsize=8.5,
            color="black" if light or not known else "white",
        )


# -- what both have ---------------------------------------------------------------------------------------------------


def _value_names(values: Sequence[object]) -> list[str]:
    names = fitted(map(name_of, values), MOST_LETTERS)
    return [plain(names[name_of(value)]) for value in values]
