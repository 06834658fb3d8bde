"""Figures of groups: how many there are and how long they are, and how alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fedsim.viz.style import GREY, Look, looks, plain

__all__ = ["distances_between_pairs", "groups_over_rounds"]


def groups_over_rounds(groups: pd.DataFrame, ax: Axes, styles: Mapping[str, Look] | None = None) -> Axes:
    """Groups of each protocol over rounds, and how many members the longest has (thin); from `Results.groups`.

    (HFedMS, Fig. 8d.) With several seeds, those of the first.
    """
    styles = styles or looks(groups["protocol"])
    members = ax.twinx()
    for protocol, table in groups.groupby("protocol", sort=False):
        first = table[table["seed"] == table["seed"].min()]
        sizes = first.groupby(["round", "group"]).size().groupby("round").agg(["size", "max"])
        look = styles[str(protocol)]
        line: dict[str, Any] = {"color": look.colour, "linestyle": look.line, "drawstyle": "steps-post"}
        ax.plot(sizes.index, sizes["size"], linewidth=1.8, label=plain(str(protocol)), **line)
        members.plot(sizes.index, sizes["max"], linewidth=0.8, **line)
    for axis in (ax.xaxis, ax.yaxis, members.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    for axes in (ax, members):
        axes.set_ylim(bottom=0)
    members.grid(visible=False)
    members.set_ylabel("members of a group (thin lines)", color=GREY)
    ax.set(title="Groups over rounds", xlabel="round", ylabel="groups")
    ax.legend(loc="center right")
    return ax


def distances_between_pairs(distances: Mapping[str, npt.NDArray[Any]], ax: Axes) -> Axes:
    """A box for each name: the class probability distances between all pairs of clients, or of groups.

    (FedGSP, Fig. 3a; HFedMS, Fig. 6.) A box has the middle half, its line is the median and its triangle the mean;
    whiskers reach from the 5th to the 95th per cent.
    """
    names = [plain(name) for name in distances]
    ax.boxplot(
        [np.asarray(values) for values in distances.values()],
        tick_labels=names,
        whis=(5, 95),
        showfliers=False,
        showmeans=True,
        medianprops={"color": "#D55E00", "linewidth": 1.6},
        meanprops={"marker": "^", "markerfacecolor": "#009E73", "markeredgecolor": "#009E73"},
    )
    ax.set_ylim(bottom=0)
    ax.set(title="Class probability distance of pairs", ylabel="CPD")
    return ax
