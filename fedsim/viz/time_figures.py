"""Figures of where the time went: what a round is made of, and how busy links were when."""

from __future__ import annotations

import math
from collections.abc import Iterator

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from fedsim.metrics.critical_path import PARTS
from fedsim.viz.human import duration, scale
from fedsim.viz.names import fitted, legible, shortened
from fedsim.viz.style import COLOURS, DARK, GREY, LINES, PART_COLOURS, RC, plain
from fedsim.viz.time_tables import TITLES

__all__ = ["link_loads", "named_time_figures", "parts_of_rounds"]

_PALE = {"airtime", "work", "samples", "idle"}  # letters on these are dark
_LETTERS, _LINK_LETTERS = 20, 34
_WIDE, _ROW, _AROUND, _PANEL = 8.5, 0.42, 1.5, 2.0  # inches
_WRITTEN = 0.07  # a share is written into its piece from so much on
_MOST_LINES = 3


def parts_of_rounds(table: pd.DataFrame, ax: Axes) -> Axes:
    """A bar for each run and protocol: the share of each part of its rounds, and how long a round is.

    *table* is that of `fedsim.experiment.explain.parts_of_rounds`.
    """
    several, protocols = table["run"].nunique() > 1, fitted(table["protocol"], _LETTERS)
    runs = fitted(table["run"], _LETTERS)
    labels = []
    for place, row in enumerate(table.to_dict("records")):
        name = protocols[row["protocol"]].replace("\n", " ")
        labels.append(plain(f"{runs[row['run']].replace(chr(10), ' ')}\n{name}" if several else name))
        begin = 0.0
        for part in PARTS:
            share = 0.0 if math.isnan(row[part]) else row[part]
            ax.barh(place, share, left=begin, height=0.66, color=PART_COLOURS[part], edgecolor="white", linewidth=0.5)
            if share >= _WRITTEN:
                colour = DARK if part in _PALE else "white"
                ax.text(
                    begin + share / 2, place, f"{share:.0%}", ha="center", va="center", color=colour, fontsize="small"
                )
            begin += share
        ax.text(1.01, place, duration(row["round_s"]), va="center", color=GREY, fontsize="small")
    ax.set_yticks(range(len(labels)), labels, linespacing=0.95)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.set_xlim(0, 1)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.set(title="What a round is made of", xlabel="share of the simulated time, along the critical path of each round")
    ax.text(1.01, 1.0, "a round", transform=ax.transAxes, va="bottom", color=GREY, fontsize="small")
    return ax


def link_loads(table: pd.DataFrame, ax: Axes) -> Axes:
    """The utilisation of the busiest links over time, from rows of `Results.link_loads` of one protocol and seed."""
    busiest = table.groupby(["link", "direction"], sort=False)["utilisation"].mean().nlargest(_MOST_LINES)
    unit, unit_name = scale("seconds", table["end_s"].max())
    for number, (link, direction) in enumerate(busiest.index):
        rows = table[(table["link"] == link) & (table["direction"] == direction)]
        ax.stairs(
            rows["utilisation"],
            [*(rows["start_s"] / unit), rows["end_s"].iloc[-1] / unit],
            baseline=None,
            color=COLOURS[number % len(COLOURS)],
            linestyle=LINES[number % len(LINES)],
            linewidth=1.5,
            label=plain(f"{shortened(legible(link), _LINK_LETTERS)}, {direction.removesuffix('link')}"),
        )
    ax.set(ylabel="utilisation", xlabel=f"simulated time, {unit_name}")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlim(0, table["end_s"].max() / unit)
    ax.set_ylim(0, max(1.0, 1.05 * table["utilisation"].max()))
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize="small", borderaxespad=0.0)
    return ax


def named_time_figures(parts: pd.DataFrame, loads: pd.DataFrame) -> Iterator[tuple[str, Figure]]:
    """Each figure with its name: ``where_time_goes``, and ``link_loads`` with a panel for each protocol of one run.

    *loads* are drawn of the first seed. There is no figure of rounds that took no time.
    """
    with mpl.rc_context(RC):
        if there := [part for part in PARTS if (parts[part] > 0).any()]:
            figure = Figure(figsize=(_WIDE, _AROUND + _ROW * len(parts)), layout="constrained")
            parts_of_rounds(parts, figure.add_subplot())
            handles = [Patch(color=PART_COLOURS[part], label=TITLES[part]) for part in there]
            figure.legend(handles=handles, loc="outside lower center", ncols=min(len(there), 6), fontsize="small")
            yield "where_time_goes", figure
        if len(loads):
            first = loads[loads["seed"] == loads["seed"].iloc[0]]
            protocols = list(dict.fromkeys(first["protocol"]))
            titles = fitted(protocols, 2 * _LETTERS)
            figure = Figure(figsize=(_WIDE, 0.4 + _PANEL * len(protocols)), layout="constrained")
            panels = figure.subplots(len(protocols), 1, squeeze=False)[:, 0]
            for protocol, ax in zip(protocols, panels, strict=True):
                link_loads(first[first["protocol"] == protocol], ax)
                ax.set_title(plain(titles[protocol].replace("\n", " ")))
            title = f"Load of the busiest links, seed {first['seed'].iloc[0]}"
            figure.suptitle(title, x=0.01, horizontalalignment="left", fontweight="bold")
            yield "link_loads", figure
