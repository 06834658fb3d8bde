"""Figures of runs: each function draws one, from a table into an Axes, and returns the Axes.

Tables are those of a run folder: *rounds* (cumulative seconds and bytes, by protocol, seed and round) or *summary*.
With several seeds a line is the mean, its band reaches from the lowest to the highest seed, and rounds that only some
seeds evaluated are left out. Where a model diverged its line ends in a cross, and the legend says on how many seeds.
*styles* (of `looks`) keeps a protocol's look the same over several figures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from fedsim.viz.human import ROUND_TIMES, duration, scale, size
from fedsim.viz.style import GREY, Look, looks, plain

__all__ = [
    "accuracy_over_bytes",
    "accuracy_over_rounds",
    "accuracy_over_time",
    "loss_over_rounds",
    "time_by_protocol",
    "traffic_by_protocol",
]

Looks = Mapping[str, Look]

_MARKED_POINTS = 25  # lines of no more points show them
_LOG_RATIO = 20.0  # an axis is logarithmic when protocols end that far apart


def accuracy_over_time(rounds: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Test accuracy over simulated time; the test error where models predict numbers."""
    score = _score(rounds)
    _curves(rounds, ax, "sim_time_s", score.column, styles)
    ax.set(title=f"{score.title} over simulated time", ylabel=score.label)
    return _scaled_x(rounds, ax, "sim_time_s", "simulated time", "seconds")


def accuracy_over_bytes(rounds: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Test accuracy (or error) over the bytes that the clients have sent and received."""
    score = _score(rounds)
    _curves(rounds, ax, "transfer_bytes", score.column, styles)
    ax.set(title=f"{score.title} over traffic", ylabel=score.label)
    return _scaled_x(rounds, ax, "transfer_bytes", "sent and received by clients", "bytes")


def accuracy_over_rounds(rounds: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Test accuracy (or error) over rounds."""
    score = _score(rounds)
    _curves(rounds, ax, "round", score.column, styles)
    ax.set(title=f"{score.title} over rounds", xlabel="round", ylabel=score.label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    return ax


def loss_over_rounds(rounds: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Test loss over rounds."""
    _curves(rounds, ax, "round", "loss", styles)
    ax.set(title="Loss over rounds", xlabel="round", ylabel=f"test loss ({_score(rounds).loss})")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    return ax


def traffic_by_protocol(summary: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Bytes that the clients have sent and received in a whole run; means over seeds."""
    unit, name = scale("bytes", summary["transfer_bytes"].max())
    _bars(summary, ax, ("uplink_bytes", "downlink_bytes"), unit, size, styles)
    ax.set(title="Traffic of the clients", xlabel=f"uplink (dark) and downlink (light), {name}")
    return ax


def time_by_protocol(summary: pd.DataFrame, ax: Axes, styles: Looks | None = None) -> Axes:
    """Simulated time of a whole run; means over seeds."""
    unit, name = scale("seconds", summary["sim_time_s"].max())
    _bars(summary, ax, ("sim_time_s",), unit, duration, styles)
    ax.set(title="Simulated time", xlabel=f"simulated time, {name}")
    return ax


class _Score(NamedTuple):
    """What tells models apart, and how a figure calls it."""

    column: str
    title: str
    label: str
    loss: str


def _score(rounds: pd.DataFrame) -> _Score:
    """The error where nothing has an accuracy."""
    if "rmse" in rounds and not rounds["accuracy"].notna().any():
        return _Score("rmse", "Error", "test error (RMSE)", "mean squared error")
    return _Score("accuracy", "Accuracy", "test accuracy", "cross-entropy, nats")


def _curves(rounds: pd.DataFrame, ax: Axes, x: str, y: str, styles: Looks | None) -> None:
    styles = styles or looks(rounds["protocol"])
    diverged = rounds[rounds["loss"] == math.inf]
    scored = rounds[rounds[y].abs() < math.inf]
    for protocol, table in rounds.dropna(subset=["loss"]).groupby("protocol", sort=False):
        seeds, lost = table["seed"].nunique(), diverged.loc[diverged["protocol"] == protocol, "seed"].nunique()
        table = table[table[y].abs() < math.inf]
        by_round = table.groupby("round")
        points = by_round.agg(x=(x, "mean"), mean=(y, "mean"), low=(y, "min"), high=(y, "max"), seeds=(y, "size"))
        points = points[points["seeds"] == points["seeds"].max()]
        title = str(protocol)
        look = styles[title]
        ax.plot(
            points["x"],
            points["mean"],
            color=look.colour,
            linestyle=look.line,
            linewidth=1.8,
            marker="o" if len(points) <= _MARKED_POINTS else "",
            markersize=3.5,
            label=plain(title) + _how_many_diverged(lost, seeds),
        )
        if lost:
            ax.plot(points["x"].tail(1), points["mean"].tail(1), color=look.colour, linestyle="", marker="X")
        if points["seeds"].max() > 1:
            ax.fill_between(points["x"], points["low"], points["high"], color=look.colour, alpha=0.18, linewidth=0)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(title=_band_title(scored), title_fontsize="small", alignment="left")


def _how_many_diverged(lost: int, seeds: int) -> str:
    """What the legend adds to a protocol's name."""
    return "" if not lost else " (diverged)" if seeds == 1 else f" ({lost} of {seeds} seeds diverged)"


def _band_title(scored: pd.DataFrame) -> str | None:
    """What lines and bands are when there are several seeds."""
    ends = scored.groupby(["protocol", "seed"])["round"].max().groupby("protocol")
    if scored.empty or ends.size().max() == 1:
        return None
    cut = ends.nunique().max() > 1
    return "mean and range over seeds" + (",\nup to the round that all reached" if cut else "")


def _scaled_x(rounds: pd.DataFrame, ax: Axes, column: str, label: str, quantity: str) -> Axes:
    """Label the x axis in the unit that fits; logarithmic, with a unit at each mark, where protocols end far apart."""
    scored = rounds.dropna(subset=["loss"])
    ends = scored.groupby("protocol")[column].max()
    if scored[column].min() > 0 and ends.max() / ends.min() >= _LOG_RATIO:
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        if quantity == "seconds":
            ax.xaxis.set_major_locator(FixedLocator(list(ROUND_TIMES)))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: ROUND_TIMES.get(value, "")))
        else:
            ax.xaxis.set_major_locator(LogLocator(numticks=8))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
        ax.set_xlabel(f"{label} (logarithmic)")
        return ax
    unit, name = scale(quantity, ends.max())
    ax.xaxis.set_major_locator(_MultiplesOf(unit))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
    ax.set_xlabel(f"{label}, {name}")
    return ax


class _MultiplesOf(MaxNLocator):
    """Marks that are round numbers in a unit."""

    def __init__(self, unit: float) -> None:
        super().__init__(nbins="auto", steps=[1, 2, 2.5, 5, 10])
        self._unit = unit

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Round numbers of units between *vmin* and *vmax*."""
        return [self._unit * mark for mark in super().tick_values(vmin / self._unit, vmax / self._unit)]


def _bars(
    summary: pd.DataFrame,
    ax: Axes,
    columns: tuple[str, ...],
    unit: float,
    text: Callable[[float], str],
    styles: Looks | None,
) -> None:
    """A horizontal bar for each protocol and accounting, of one part for each column, with its total in words."""
    styles = styles or looks(summary["protocol"])
    rows = summary.groupby(["protocol", "accounting"], sort=False, as_index=False)[list(columns)].mean()
    labels = []
    for position, (_, row) in enumerate(rows.iterrows()):
        look, parts, event = (
            styles[row["protocol"]],
            [float(row[part]) for part in columns],
            row["accounting"] == "event",
        )
        labels.append(plain(row["protocol"]) if event else f"{plain(row['protocol'])} (formula)")
        begin = 0.0
        for part, colour in zip(parts, (look.colour, look.faded()), strict=False):
            width, hatch = (0.0 if math.isnan(part) else part / unit), (None if event else "///")
            ax.barh(position, width, left=begin, height=0.6, color=colour, hatch=hatch, edgecolor="white", linewidth=0)
            begin += width
        known = "no round has ended" if math.isnan(sum(parts)) else text(sum(parts))
        ax.annotate(f" {known}", (begin, position), va="center", fontsize="small", color=GREY)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)  # the first on top
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.margins(x=0.18)
    ax.set_xlim(left=0)
