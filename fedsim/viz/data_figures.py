"""Figures of how samples are spread: which classes each client has, and how many samples; and all figures of
a scenario's data as files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, PercentFormatter
from numpy.typing import NDArray

from fedsim.data.class_counts import class_counts
from fedsim.data.dataset import FederatedDataset
from fedsim.data.distances import mixtures
from fedsim.topology.graph import Topology
from fedsim.topology.places import factories, factory_names
from fedsim.viz.sample_sheet import sample_sheet
from fedsim.viz.save import save_figure
from fedsim.viz.style import GREY, RC, plain

__all__ = ["classes_by_client", "samples_per_client", "save_data_figures"]

_SHARES = LinearSegmentedColormap.from_list(
    "shares", ["#ffffff", "#cfe3f1", "#7fb8dc", "#2b83ba", "#0a4a7a", "#04223d"]
)
_BAR = "#0072B2"
_BOUND = "#D55E00"
_NUMBERED = 40  # clients whose numbers all stand on the axis
_NAMED = 34  # classes likewise
_FACTORIES = 16  # factories whose names have room
MOST_CLIENTS = 5_000
MOST_COUNTS = 2_000_000
"""Of which there are more than a picture has points."""
LETTERS = 70
"""That have room beside each other: where the names of all factories have more, they are numbered."""


def classes_by_client(
    counts: NDArray[np.int64],
    figure: Figure | SubFigure,
    *,
    factory: NDArray[np.int64] | None = None,
    factory_names: Sequence[str] = (),
    class_names: Sequence[str] = (),
    title: str = "Classes of each client",
    darkest: float | None = None,
    one_in: int = 1,
) -> tuple[Axes, Axes]:
    """Draw (clients, classes) *counts*: a column for each client, its sizes above; returns (classes, sizes).

    The colour of a cell is the class's share of the client's samples, on a scale by square roots, which shows small
    ones. With (clients,) *factory* numbers the clients are in their order, factory by factory, with lines between them.
    *darkest* is the share of the darkest colour; left out, the largest there is. *counts* and *factory* are those of
    *one_in* so many clients, if it is more than 1. Raises `ValueError` for a client
    without samples.
    """
    clients, classes = counts.shape
    order = np.arange(clients) if factory is None else np.argsort(factory, kind="stable")
    shares = mixtures(counts)[order]
    ax = figure.add_subplot()
    largest = darkest or float(shares.max())
    norm = PowerNorm(0.5, vmin=0, vmax=largest)
    image = ax.imshow(shares.T, aspect="auto", cmap=_SHARES, norm=norm, interpolation_stage="data")
    ax.grid(visible=False)
    _number_clients(ax, order, one_in)
    _name_classes(ax, classes, class_names)
    bar = figure.colorbar(image, ax=ax, pad=0.015, aspect=25)
    bar.ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=1 if largest < 0.1 else 0))
    bar.set_label("share of the client's samples")
    bar.outline.set_visible(False)
    top = ax.inset_axes((0, 1.03, 1, 0.28), sharex=ax)
    _bars(top, counts.sum(1)[order])
    figure.suptitle(title, x=0.01, horizontalalignment="left", fontsize=11, fontweight="bold")
    if factory is not None and factory.max() > 0:
        _bound_factories(ax, top, factory[order], factory_names)
    return ax, top


def samples_per_client(sizes: NDArray[np.int64], ax: Axes, title: str = "Samples of each client") -> Axes:
    """A histogram of (clients,) *sizes*, with their median; bins are whole numbers of samples wide."""
    smallest, largest = int(sizes.min()), int(sizes.max())
    width = max(math.ceil((largest - smallest + 1) / min(2 * math.isqrt(len(sizes)) + 1, 40)), 1)
    edges = np.arange(smallest, largest + width + 1, width) - 0.5
    ax.hist(sizes, bins=edges.tolist(), color=_BAR, edgecolor="white", linewidth=0.6)
    median = float(np.median(sizes))
    ax.axvline(median, color="black", linewidth=1.2, linestyle="--")
    ax.margins(y=0.12)
    ax.annotate(f" median {median:,g}", (median, 0.95), xycoords=ax.get_xaxis_transform(), fontsize="small", color=GREY)
    span = f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    ax.set(title=title, xlabel=f"training samples of a client ({span}; {sizes.sum():,} in all)", ylabel="clients")
    ax.grid(axis="x", visible=False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    return ax


def _number_clients(ax: Axes, order: NDArray[np.int64], one_in: int) -> None:
    clients, number = len(order), one_in * order
    shown = "" if one_in == 1 else f" (1 in {one_in} shown)"
    ax.set_xlabel(f"client{shown}" if (np.diff(order) > 0).all() else f"client{shown}, factory by factory")
    if clients <= _NUMBERED:
        step = 1 if clients <= 24 else 2
        ax.set_xticks(range(0, clients, step), [str(client) for client in number[::step]])
        return
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda place, _: f"{number[int(place)]:,}" if 0 <= place < clients else "")
    )


def _name_classes(ax: Axes, classes: int, names: Sequence[str]) -> None:
    names = [plain(name) for name in names] or [str(label) for label in range(classes)]
    step = math.ceil(classes / _NAMED)
    ax.set_yticks(range(0, classes, step), names[::step], fontsize="small" if classes > 12 else None)
    ax.tick_params(axis="both", length=0)
    ax.set_ylabel("class" if step == 1 else f"class (1 in {step} named)")


def _bars(top: Axes, sizes: NDArray[np.int64]) -> None:
    """What stands above the classes: how many samples each client has."""
    clients = len(sizes)
    if clients <= _NUMBERED:
        top.bar(np.arange(clients), sizes, width=0.8, color=_BAR, linewidth=0)
    else:
        top.stairs(sizes, np.arange(clients + 1) - 0.5, fill=True, color=_BAR, linewidth=0)
    top.set_xlim(-0.5, clients - 0.5)
    top.set_ylim(0, 1.1 * sizes.max())
    top.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    top.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    top.tick_params(axis="x", length=0, labelbottom=False)
    top.grid(axis="x", visible=False)
    top.set_ylabel("samples")


def _bound_factories(ax: Axes, top: Axes, factory: NDArray[np.int64], names: Sequence[str]) -> None:
    """Lines between factories, and above them their names, where there is room."""
    changes = np.flatnonzero(np.diff(factory)) + 1
    ends = [0, *changes.tolist(), len(factory)]
    for place in ends[1:-1]:
        for axes in (ax, top):
            axes.axvline(place - 0.5, color=_BOUND, linewidth=1.2 if len(ends) <= 2 * _FACTORIES else 0.5)
    if len(ends) - 1 > _FACTORIES:
        ax.set_xlabel(f"{ax.get_xlabel()} ({len(ends) - 1} factories)")
        return
    above: Any = top.secondary_xaxis("top")
    middles = [(begin + end - 1) / 2 for begin, end in pairwise(ends)]
    brief = "factory " if len(middles) <= _FACTORIES // 2 else ""
    labels = [plain(names[factory[begin]]) if names else f"{brief}{factory[begin]}" for begin in ends[:-1]]
    if not names and not brief:
        above.set_xlabel("factory", fontsize="small", color=_BOUND)
    above.xaxis.set_major_locator(FixedLocator(middles))
    above.set_xticks(middles, labels, fontsize="small", color=_BOUND)
    above.tick_params(length=0, pad=1)
    above.xaxis.set_minor_formatter(NullFormatter())
    above.spines["top"].set_visible(False)


def save_data_figures(
    data: FederatedDataset, topology: Topology, folder: Path, text: Callable[[NDArray[Any]], str] | None = None
) -> list[Path]:
    """Draw *data* into files of *folder*; returns their paths. *text* makes text of one stored sample of ids.

    ``samples.png`` has the sizes of the clients' training sets. ``classes.png`` has their classes, where there are any,
    and ``sheet.png`` shows some samples, unless they are only declared.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with mpl.rc_context(RC):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        samples_per_client(data.client_samples, figure.add_subplot())
        paths.append(save_figure(figure, folder / "samples.png"))
        if data.classes is not None:
            figure = Figure(figsize=(9.0, 5.5), layout="constrained")
            names = factory_names(topology)
            one_in = max(math.ceil(data.clients / MOST_CLIENTS), math.ceil(data.clients * data.classes / MOST_COUNTS))
            some = slice(None, None, one_in)
            classes_by_client(
                class_counts(data, some),
                figure,
                one_in=one_in,
                factory=factories(topology)[some] if len(names) > 1 else None,
                factory_names=names if sum(map(len, names)) <= LETTERS else (),
                class_names=data.class_names,
            )
            paths.append(save_figure(figure, folder / "classes.png"))
        if data.stored is not None:
            sheet = sample_sheet(data, rows="client" if data.regression else "class", decode=text)
            paths.append(save_figure(sheet, folder / "sheet.png"))
    return paths
