"""Horizontal bars: one for each protocol, each run and each accounting, with its mean in words and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from fedsim.metrics.intervals import half_width
from fedsim.viz.names import fitted
from fedsim.viz.series import Looks, runs_of, series_of
from fedsim.viz.style import DARK, GREY, Look, plain

__all__ = ["Quantity", "bar_rows", "draw_bars"]

_LETTERS = 20  # of a line of a name
_CASING = withStroke(linewidth=2.6, foreground="white")  # of whiskers, else unseen on a black bar


@dataclass(frozen=True)
class Quantity:
    """What the bars are of."""

    columns: Sequence[str]
    """Parts of a bar, from left to right: columns of the summary."""
    unit: float
    text: Callable[[float], str]
    missing: str
    """What stands where no seed has a value."""
    most: float = math.inf
    """What no value exceeds: whiskers end there, as they do at zero."""


@dataclass(frozen=True)
class _Row:
    label: str
    look: Look | None = None
    """None for a row that only has the name of a run."""
    seeds: pd.DataFrame | None = None
    formula: bool = False


def bar_rows(summary: pd.DataFrame) -> int:
    """How many rows `draw_bars` has."""
    return len(_rows(summary, None))


def draw_bars(summary: pd.DataFrame, ax: Axes, quantity: Quantity, styles: Looks | None) -> str:
    """Draw them into *ax*; returns what the axis has to say of them: that whiskers are intervals, if there are any."""
    rows = _rows(summary, styles)
    whiskers = [_draw(row, position, ax, quantity) for position, row in enumerate(rows)]
    ax.set_yticks(range(len(rows)), [row.label for row in rows])
    for label, row in zip(ax.get_yticklabels(), rows, strict=False):  # none where another axes has them
        label.set(fontweight="bold" if row.look is None else "normal", linespacing=0.95)
    ax.set_ylim(len(rows) - 0.4, -0.6)  # the first on top
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.margins(x=0.25)
    ax.set_xlim(left=0)
    return "\nmean and 95 % interval over seeds" if any(whiskers) else ""


def _rows(summary: pd.DataFrame, styles: Looks | None) -> list[_Row]:
    series = series_of(summary, styles)
    runs = fitted(series.runs, _LETTERS)
    names = {key: key[1] if series.grouped else series.name(*key) for key in series.looks}
    labels = fitted(names.values(), _LETTERS)
    rows: list[_Row] = []
    for (run, protocol), look in series.looks.items():
        if series.grouped and run in runs:
            rows.append(_Row(plain(runs.pop(run))))
        label = plain(labels[names[run, protocol]])
        seeds = summary[(runs_of(summary) == run) & (summary["protocol"] == protocol)]
        for accounting, some in seeds.groupby("accounting", sort=False):
            event = accounting == "event"
            rows.append(_Row(label if event else f"{label} (formula)", look, some, not event))
    return rows


def _draw(row: _Row, position: int, ax: Axes, quantity: Quantity) -> bool:
    """One bar; returns whether it has a whisker."""
    if row.look is None or row.seeds is None:
        return False
    parts = row.seeds[list(quantity.columns)]
    begin = 0.0
    for column, colour in zip(quantity.columns, (row.look.colour, row.look.faded()), strict=False):
        mean = float(parts[column].mean())
        width = 0.0 if math.isnan(mean) else mean / quantity.unit
        hatch = "///" if row.formula else None
        ax.barh(position, width, left=begin, height=0.6, color=colour, hatch=hatch, edgecolor="white", linewidth=0)
        begin += width
    known = parts.sum(axis=1, skipna=False).dropna()
    half = half_width(known.to_list()) / quantity.unit
    end, has_whisker = begin, half > 0.0  # neither of one seed nor of equal values
    if has_whisker:
        end = max(begin, min(begin + half, quantity.most / quantity.unit))
        ax.errorbar(
            begin,
            position,
            xerr=[[min(half, begin)], [end - begin]],
            fmt="none",
            ecolor=DARK,
            elinewidth=1.2,
            capsize=3.0,
            path_effects=[_CASING],
        )
    text = quantity.missing if known.empty else quantity.text(float(known.mean()))
    if 0 < len(known) < len(parts):
        text += f" ({len(known)} of {len(parts)} seeds)"
    ax.annotate(f" {text}", (end, position), va="center", fontsize="small", color=GREY)
    return has_whisker
