"""Accuracy against what it cost, a point for each protocol and run, with the Pareto front as a line of steps."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from fedsim.viz.axes import labelled_x
from fedsim.viz.chosen_tables import errors_in_a_unit, told_in_a_unit
from fedsim.viz.names import fitted
from fedsim.viz.series import Looks, Series, runs_of
from fedsim.viz.style import GREY, RC, Look, looks, plain

__all__ = ["front_figure", "front_score"]

_WIDE, _HIGH = 9.6, 3.2  # inches
_LETTERS = 36  # of a line in the legend
_LINE: dict[str, Any] = {"color": GREY, "linewidth": 1.2, "linestyle": "-", "zorder": 1.0}
_PANELS = (
    ("front_time", "sim_time_s", "simulated time", "seconds"),
    ("front_bytes", "transfer_bytes", "sent and received by clients", "bytes"),
)


def front_figure(comparison: pd.DataFrame, protocols: Iterable[str]) -> Figure | None:
    """The fronts of a *comparison* (a table of `fedsim.compare`, with a column ``run`` if it is of several runs).

    One panel is against simulated time, the other against bytes. A point is the mean of a row over its seeds, with the
    95 % intervals of both means as bars. The line goes through the points that the table has on the front: at each cost
    it is at the best mean score that was there for at most that cost. Error is used where there is no accuracy.
    *protocols* are all of the run, in order: each looks as in the other figures. None where fewer than two rows have a
    score.
    """
    score, label = front_score(comparison)
    scored = comparison[comparison[f"{score}_mean"].abs() < math.inf]
    scored = scored[scored["accounting"] == "event"]
    if len(scored) < 2:
        return None
    with mpl.rc_context(RC):
        series = _points(scored, looks(protocols))
        figure = Figure(figsize=(_WIDE, _HIGH + series.legend_inches(_WIDE)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for ax, (front, cost, title, quantity) in zip((left, right), _PANELS, strict=True):
            _draw_points(scored, ax, series, score, cost)
            labelled_x(ax, scored[f"{cost}_mean"].min(), scored[f"{cost}_mean"], title, quantity)
            _draw_front(scored[scored[front]], ax, score, cost)
            ax.set_title(f"{label[0]} against {'time' if quantity == 'seconds' else 'traffic'}")
        left.set_ylabel(label[1])
        series.legend_below(figure)
    return figure


def front_score(comparison: pd.DataFrame) -> tuple[str, tuple[str, str]]:
    """The metric that fronts are of, and how the figure calls it: in its unit, where that is known of all rows."""
    if not comparison["final_accuracy_mean"].isna().all():
        return "final_accuracy", ("Accuracy", "test accuracy")
    if "rmse" in told_in_a_unit(comparison):
        name, title = next(iter(errors_in_a_unit(comparison).items()))
        return name, ("Error", f"test error ({title})")
    return "rmse", ("Error", "test error (RMSE)")


def _points(scored: pd.DataFrame, of_protocols: Looks) -> Series:
    """How points look: colour and marker are the protocol, or the run; of several of both, the marker is the run."""
    keys = list(zip(runs_of(scored), scored["protocol"].astype(str), strict=True))
    runs, protocols = (list(dict.fromkeys(names)) for names in zip(*keys, strict=True))
    of_runs = looks(runs)
    both = len(runs) > 1 < len(protocols)
    title = "mean and 95 % interval over seeds" if (scored["n"] > 1).any() else ""
    if both:
        points = {key: Look(of_protocols[key[1]].colour, "-", of_runs[key[0]].marker) for key in keys}
        shown = [(name, Look(of_protocols[name].colour, "-", "")) for name in protocols]
        shown += [(run, Look(GREY, "-", of_runs[run].marker)) for run in runs]
        title = "\n".join(filter(None, (title, "colour: protocol; marker: run")))
    else:
        points = {key: of_runs[key[0]] if len(runs) > 1 else of_protocols[key[1]] for key in keys}
        shown = [(key[0] if len(runs) > 1 else key[1], look) for key, look in points.items()]
    names = fitted((name for name, _ in shown), _LETTERS)
    entries = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle="" if look.marker else "-", linewidth=3.0)
        for _, look in shown
    ]
    for entry, (name, _) in zip(entries, shown, strict=True):
        entry.set_label(plain(names[name]))
    return Series(points, title, [*entries, Line2D([], [], label="Pareto front of the means", **_LINE)])


def _draw_points(scored: pd.DataFrame, ax: Axes, series: Series, score: str, cost: str) -> None:
    most = 1.0 if score == "final_accuracy" else math.inf
    for run, (_, row) in zip(runs_of(scored), scored.iterrows(), strict=True):
        look = series.looks[run, str(row["protocol"])]
        x, y = row[f"{cost}_mean"], row[f"{score}_mean"]
        wide, high = (max(0.0, row[f"{name}_half_width"]) for name in (cost, score))  # NaN becomes 0
        bars, _, _ = ax.errorbar(
            x,
            y,
            xerr=[[min(wide, x)], [wide]],
            yerr=[[min(high, y)], [min(high, most - y)]],
            color=look.colour,
            marker=look.marker,
            markersize=6.5,
            elinewidth=1.2,
            linestyle="",
        )
        bars.set_zorder(3.0)


def _draw_front(on_it: pd.DataFrame, ax: Axes, score: str, cost: str) -> None:
    """From point to point, and from the last one to the edge: what costs more is not better."""
    if on_it.empty:
        return
    points = on_it.sort_values([f"{cost}_mean", f"{score}_mean"])
    begin, end = ax.get_xlim()
    costs, scores = ([*points[f"{name}_mean"]] for name in (cost, score))
    ax.plot([*costs, end], [*scores, scores[-1]], drawstyle="steps-post", **_LINE)
    ax.set_xlim(begin, end)
