"""Figures of runs: each function draws one, from a table into an Axes, and returns the Axes.

Tables are those of a run folder: *rounds* (cumulative seconds and bytes, by protocol, seed and round) or *summary*. A
table of several runs has a column ``run`` too. With several seeds a line is the mean, its band reaches from the lowest
to the highest seed, and rounds that only some seeds evaluated are left out; a bar is the mean, with a 95 % interval.
Where a model diverged its line ends in a cross, and the legend says on how many seeds. The legend stands to the right
of the axes, or is left out with ``legend=False``. *styles* (of `looks`) keeps a protocol's look the same over several
figures. *run* draws the lines of this run alone, on axes in the units of all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fedsim.metrics.chosen import chosen_column, chosen_columns
from fedsim.viz.axes import scaled_x
from fedsim.viz.bars import Quantity, draw_bars
from fedsim.viz.curves import curve_series, draw_curves
from fedsim.viz.human import duration, number, scale, size
from fedsim.viz.series import Looks, Series, runs_of

__all__ = [
    "Score",
    "accuracy_by_protocol",
    "accuracy_over_bytes",
    "accuracy_over_rounds",
    "accuracy_over_time",
    "curves_of",
    "loss_over_rounds",
    "score_of",
    "time_by_protocol",
    "traffic_by_protocol",
]


def accuracy_over_time(
    rounds: pd.DataFrame, ax: Axes, styles: Looks | None = None, *, legend: bool = True, run: str | None = None
) -> Axes:
    """Test accuracy over simulated time; the test error where models predict numbers."""
    score = score_of(rounds)
    _curves(rounds, ax, "sim_time_s", score.column, styles, legend, run)
    ax.set(title=f"{score.title} over simulated time", ylabel=score.label)
    return scaled_x(rounds, ax, "sim_time_s", "simulated time", "seconds")


def accuracy_over_bytes(
    rounds: pd.DataFrame,
    ax: Axes,
    styles: Looks | None = None,
    *,
    legend: bool = True,
    run: str | None = None,
    sender: str = "clients",
) -> Axes:
    """Test accuracy (or error) over the bytes that the clients, or another *sender*, have sent and received."""
    score = score_of(rounds)
    _curves(rounds, ax, "transfer_bytes", score.column, styles, legend, run)
    ax.set(title=f"{score.title} over traffic", ylabel=score.label)
    return scaled_x(rounds, ax, "transfer_bytes", f"sent and received by {sender}", "bytes")


def accuracy_over_rounds(
    rounds: pd.DataFrame, ax: Axes, styles: Looks | None = None, *, legend: bool = True, run: str | None = None
) -> Axes:
    """Test accuracy (or error) over rounds."""
    score = score_of(rounds)
    _curves(rounds, ax, "round", score.column, styles, legend, run)
    ax.set(title=f"{score.title} over rounds", xlabel="round", ylabel=score.label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    return ax


def loss_over_rounds(
    rounds: pd.DataFrame, ax: Axes, styles: Looks | None = None, *, legend: bool = True, run: str | None = None
) -> Axes:
    """Test loss over rounds."""
    _curves(rounds, ax, "round", "loss", styles, legend, run)
    ax.set(title="Loss over rounds", xlabel="round", ylabel=f"test loss ({score_of(rounds).loss})")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    return ax


def accuracy_by_protocol(summary: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Test accuracy at the end of a whole run; the test error where models predict numbers."""
    score = score_of(summary, "final_accuracy")
    quantity = Quantity(
        (score.column,), 1.0, number, "none", most=1.0 if score.column == "final_accuracy" else math.inf
    )
    whiskers = draw_bars(summary, ax, quantity, styles)
    ax.set(title=f"{score.title} at the end", xlabel=f"{score.label}{whiskers}")
    return ax


def traffic_by_protocol(summary: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Bytes that the clients have sent and received in a whole run; means over seeds."""
    unit, name = scale("bytes", summary["transfer_bytes"].max())
    quantity = Quantity(("uplink_bytes", "downlink_bytes"), unit, size, "no round has ended")
    whiskers = draw_bars(summary, ax, quantity, styles)
    ax.set(title="Traffic of the clients", xlabel=f"uplink (dark), downlink (light), {name}{whiskers}")
    return ax


def time_by_protocol(summary: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Simulated time of a whole run; means over seeds."""
    unit, name = scale("seconds", summary["sim_time_s"].max())
    whiskers = draw_bars(summary, ax, Quantity(("sim_time_s",), unit, duration, "no round has ended"), styles)
    ax.set(title="Simulated time", xlabel=f"simulated time, {name}{whiskers}")
    return ax


def curves_of(rounds: pd.DataFrame, styles: Looks | None = None) -> Series:
    """The curves in the figures of accuracy, for a legend that several of them share."""
    return curve_series(rounds, score_of(rounds).column, styles)


class Score(NamedTuple):
    """What tells models apart, and how a figure calls it."""

    column: str
    """Of the table."""
    title: str
    label: str
    loss: str


def score_of(table: pd.DataFrame, accuracy: str = "accuracy") -> Score:
    """What the models in *table* are told apart by: the column *accuracy*, or the error where nothing has one.

    The error is in its unit, where that is known of all that have one.
    """
    if "rmse" not in table or table[accuracy].notna().any():
        return Score(accuracy, "Accuracy", "test accuracy", "cross-entropy, nats")
    for name in chosen_columns(map(str, table)):
        column = chosen_column(name)
        if column and column.without_unit == "rmse" and table[name].notna().equals(table["rmse"].notna()):
            return Score(name, "Error", f"test error (RMSE, {column.unit})", "mean squared error")
    return Score("rmse", "Error", "test error (RMSE)", "mean squared error")


def _curves(
    rounds: pd.DataFrame, ax: Axes, x: str, y: str, styles: Looks | None, legend: bool, run: str | None
) -> None:
    series = curve_series(rounds, y, styles)
    draw_curves(rounds if run is None else rounds[runs_of(rounds) == run], ax, x, y, series)
    if legend:
        series.legend_beside(ax)
