"""Curves of what was learned: one for each protocol and run, with a band over its seeds."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes

from fedsim.viz.series import Looks, Series, runs_of, series_of
from fedsim.viz.style import plain

__all__ = ["curve_series", "draw_curves"]

_MARKED_POINTS = 25  # lines of no more points show all of them
_MARKS = 8  # at least, on longer lines
_BAND = 0.18


def curve_series(rounds: pd.DataFrame, y: str, styles: Looks | None) -> Series:
    """The curves of *rounds*, of which the legend says what the bands are and on how many seeds a model diverged."""
    evaluated = rounds.dropna(subset=["loss"])
    notes = {}
    for key, table in evaluated.groupby([runs_of(evaluated), "protocol"], sort=False):
        seeds, lost = table["seed"].nunique(), table.loc[table["loss"] == math.inf, "seed"].nunique()
        if lost:
            run, protocol = map(str, key)
            notes[run, protocol] = "(diverged)" if seeds == 1 else f"({lost} of {seeds} seeds diverged)"
    series = series_of(evaluated, styles, notes)
    title = "\n".join(filter(None, (_band_title(evaluated, y), series.title)))
    return Series(series.looks, title, series.entries)


def draw_curves(rounds: pd.DataFrame, ax: Axes, x: str, y: str, series: Series) -> None:
    """Means over seeds, their range as a band; a line of which a model diverged ends in a cross."""
    evaluated = rounds.dropna(subset=["loss"])
    for key, table in evaluated.groupby([runs_of(evaluated), "protocol"], sort=False):
        run, protocol = map(str, key)
        look, lost = series.looks[run, protocol], bool((table["loss"] == math.inf).any())
        by_round = table[table[y].abs() < math.inf].groupby("round")
        points = by_round.agg(x=(x, "mean"), mean=(y, "mean"), low=(y, "min"), high=(y, "max"), seeds=(y, "size"))
        points = points[points["seeds"] == points["seeds"].max()]
        ax.plot(
            points["x"],
            points["mean"],
            color=look.colour,
            linestyle=look.line,
            linewidth=1.8,
            marker=look.marker,
            markersize=4.5,
            markevery=_marked(len(points), list(series.looks).index((run, protocol)) / len(series.looks)),
            label=plain(series.name(run, protocol)),
        )
        if lost:
            end = points.tail(1)
            (cross,) = ax.plot(end["x"], end["mean"], color=look.colour, linestyle="", marker="X", markersize=10.0)
            cross.set(markeredgecolor="white", zorder=3.0)  # above its line's own marker
        if points["seeds"].max() > 1:
            ax.fill_between(points["x"], points["low"], points["high"], color=look.colour, alpha=_BAND, linewidth=0)


def _marked(points: int, share: float) -> tuple[int, int]:
    """The first point with a marker, and the number of points to the next; *share* sets lines off against each other.

    >>> _marked(20, 0.5), _marked(80, 0.5)
    ((0, 1), (5, 10))
    """
    step = 1 if points <= _MARKED_POINTS else points // _MARKS
    return int(share * step), step


def _band_title(evaluated: pd.DataFrame, y: str) -> str:
    """What lines and bands are when there are several seeds."""
    scored = evaluated[evaluated[y].abs() < math.inf]
    ends = scored.groupby([runs_of(scored), "protocol", "seed"])["round"].max().groupby(level=[0, 1])
    if scored.empty or ends.size().max() == 1:
        return ""
    cut = ends.nunique().max() > 1
    return "mean and range over seeds" + (",\nup to the round that all reached" if cut else "")
