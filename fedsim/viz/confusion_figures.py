"""Figures of what was taken for what: a table of shares for each protocol, in colours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from fedsim.viz.names import fitted, legible, shortened
from fedsim.viz.style import COLOURS, DARK, RC, plain

__all__ = ["confusion", "named_confusion_figures"]

NUMBERED = 12
"""Of so many classes, at most, each share stands in its cell."""
_SHADES = LinearSegmentedColormap.from_list("shares", ["#ffffff", "#9cc7e4", COLOURS[0], "#003a5c"]).with_extremes(
    bad="#e4e7ea"
)
_DARK_FROM = 0.45  # letters are white from this share on
_LETTERS = 20  # of a class, beside an axis
_LARGEST, _SMALLEST = 8.5, 4.5  # points of letters beside the axes
_SIDE = (2.6, 5.2)  # inches of a panel
_CELL = 0.42  # inches, where that fits
_WIDE = 14.5  # inches
_POINTS = 72.0  # in an inch


def confusion(
    table: pd.DataFrame, ax: Axes, *, classes: Sequence[int] | None = None, names: Sequence[str] = (), side: float = 4.0
) -> Axes:
    """The shares of each true class (row) that were taken for each class (column), from rows of `Results.confusion`.

    Counts of all seeds are added up. *classes* are the numbers of those that are drawn, and *names* theirs; left out,
    all that are in the tests or in the predictions. A row without samples is grey. The panel is *side* inches wide.
    """
    if classes is None:
        classes, names = _classes(table)
    place = {number: at for at, number in enumerate(classes)}
    counts = np.zeros((len(place), len(place)), np.int64)
    rows, columns = (table[name].map(place).to_numpy(np.int64) for name in ("true_index", "predicted_index"))
    np.add.at(counts, (rows, columns), table["count"].to_numpy(np.int64))
    of_row = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, of_row, out=np.full(counts.shape, np.nan), where=of_row > 0)
    ax.imshow(np.ma.masked_invalid(shares), cmap=_SHADES, vmin=0.0, vmax=1.0, interpolation="nearest")
    _name_classes(ax, names, side)
    if len(names) <= NUMBERED:
        ax.set_xticks(np.arange(0.5, len(names) - 1), minor=True)
        ax.set_yticks(np.arange(0.5, len(names) - 1), minor=True)
        ax.grid(visible=True, which="minor", linewidth=0.6)
        size = min(_LARGEST, 0.3 * _POINTS * side / len(names))
        for (row, column), share in np.ndenumerate(shares):
            if counts[row, column]:
                colour = "white" if share >= _DARK_FROM else DARK
                ax.text(column, row, _share(share), ha="center", va="center", color=colour, fontsize=size)
    return ax


def _name_classes(ax: Axes, names: Sequence[str], side: float) -> None:
    """Beside the axes, as large as fits; where not all do, every second one, or third."""
    room = _POINTS * side / len(names)  # points for a class
    points = min(_LARGEST, max(_SMALLEST, 0.85 * room))
    step = math.ceil(1.1 * points / room)
    shown = [plain(shortened(legible(name), _LETTERS)) for name in names[::step]]
    turned = max(map(len, shown)) * 0.65 * points > step * room
    ax.set_xticks(range(0, len(names), step), shown, fontsize=points, rotation=90 if turned else 0)
    ax.set_yticks(range(0, len(names), step), shown, fontsize=points)
    ax.tick_params(length=0, which="both")
    ax.grid(visible=False)
    ax.spines[:].set_visible(True)
    ax.set_axisbelow(False)
    ax.set(xlabel="predicted class", ylabel="true class")


def named_confusion_figures(table: pd.DataFrame, protocols: Iterable[str]) -> Iterator[tuple[str, Figure]]:
    """A figure for each test set, with a panel for each of the *protocols* that has rows; *table* is of one run.

    They are called ``confusion``, and ``confusion_unseen`` where the test set is not named first.
    """
    first, known = table["test_set"].iloc[0], list(protocols)
    for test_set, of_set in table.groupby("test_set", sort=False):
        drawn = [protocol for protocol in known if (of_set["protocol"] == protocol).any()]
        with mpl.rc_context(RC):
            yield "confusion" if test_set == first else f"confusion_{test_set}", _panels(of_set, drawn, str(test_set))


def _panels(table: pd.DataFrame, protocols: Sequence[str], test_set: str) -> Figure:
    classes, names = _classes(table)
    side = min(_SIDE[1], max(_SIDE[0], _CELL * len(classes)))
    wide = side + 0.35 + 0.08 * min(_LETTERS, max(map(len, names)))
    across = max(1, min(len(protocols), int(_WIDE / wide)))
    lines = -(-len(protocols) // across)
    figure = Figure(figsize=(wide * across + 0.9, (wide + 0.35) * lines + 0.5), layout="constrained")
    axes = list(figure.subplots(lines, across, squeeze=False).flat)
    titles = fitted(protocols, int(side * 9))
    for protocol, ax in zip(protocols, axes, strict=False):
        confusion(table[table["protocol"] == protocol], ax, classes=classes, names=names, side=side)
        ax.set_title(plain(titles[protocol]))
    for ax in axes[len(protocols) :]:
        ax.set_axis_off()
    bar = figure.colorbar(axes[0].images[0], ax=axes, label="share of the true class", shrink=0.6 / lines, aspect=20)
    bar.outline.set_visible(False)
    seeds = table["seed"].nunique()
    added = f", {seeds} seeds added up" if seeds > 1 else ""
    figure.suptitle(f"What was taken for what (test set: {test_set}{added})", x=0.01, ha="left", fontweight="bold")
    return figure


def _classes(table: pd.DataFrame) -> tuple[list[int], list[str]]:
    """The numbers and the names of the classes that occur, in their order."""
    pairs = [table[["true_index", "true"]], table[["predicted_index", "predicted"]]]
    named = pd.concat([pair.set_axis(["number", "name"], axis=1) for pair in pairs])
    named = named.drop_duplicates("number").sort_values("number")
    return named["number"].tolist(), named["name"].tolist()


def _share(share: float) -> str:
    """Two digits: 1 and 0.03; a share that is smaller than it looks is no 0.

    >>> _share(1.0), _share(0.034), _share(0.001), _share(0.999)
    ('1', '.03', '<.01', '.99')
    """
    if share == 1.0:
        return "1"
    return "<.01" if share < 0.005 else f"{min(share, 0.99):.2f}"[1:]
