"""Samples to look at: a row for each class or client, as images, spectrograms, lines or text.

Left out: choosing samples by what a model makes of them; those shown are spread evenly over all that there are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine
from fedsim.errors import UserError
from fedsim.viz.style import plain

__all__ = ["Kind", "sample_sheet"]

Kind = Literal["image", "spectrogram", "series", "text"]

_MOST_ROWS = 12
_IMAGE = 0.68  # of an image's width; inches, as all lengths here
_TEXT = 8.0  # of a row of texts
_CHARACTER = 0.0588  # of a character of 7 points
_TEXT_LINES = 3
_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")


def sample_sheet(
    data: FederatedDataset,
    *,
    rows: Literal["class", "client"] = "class",
    chosen: Sequence[int] | None = None,
    per_row: int | None = None,
    kind: Kind | None = None,
    decode: Callable[[NDArray[Any]], str] | None = None,
    title: str | None = None,
) -> Figure:
    """A figure of training samples of *data*, as large as they need.

    *chosen* are the classes or clients to show; left out, all, or 12 evenly chosen. *per_row* samples each are spread
    evenly over what there is; left out, 10 images, 5 others, or 1 text. *kind* says what a sample is; left out: ids are
    text, three dimensions an image, fewer are series. *decode* makes text of one stored sample; left out, its ids are
    shown. All images of a sheet share their scale of grey, all series their axes. Raises `UserError` for a data set
    that is only declared, and for classes of one that has none.
    """
    if data.stored is None or data.y is None:
        raise UserError(f"data set {data.name!r} declares numbers only; it has no samples to show")
    if rows == "class" and data.classes is None:
        raise UserError(f"data set {data.name!r} has numbers to predict and no classes; show its clients instead")
    kind = kind or _kind(data)
    per_row = per_row or {"image": 10, "text": 1}.get(kind, 5)
    available = data.clients if rows == "client" else int(data.classes or 0)
    shown = _evenly(np.arange(available), _MOST_ROWS).tolist() if chosen is None else list(chosen)
    trained = np.sort(np.concatenate(data.train_ids))
    pools = [data.train_ids[row] if rows == "client" else trained[data.y[trained] == row] for row in shown]
    picked = [_evenly(pool, per_row) for pool in pools]
    limits = _limits(data, np.concatenate(picked), kind)
    figure = _blank(data, len(shown), per_row, kind)
    cells = figure.subplots(len(shown), per_row, squeeze=False, sharex=kind == "series", sharey=kind == "series")
    for label, ids, axes in zip(shown, picked, cells, strict=True):
        for column, ax in enumerate(axes):
            _bare(ax)
            if column < len(ids):
                _draw(data, ax, int(ids[column]), kind, limits, decode)
        _label(axes[0], data, rows, label)
    heading = title or _title(data, rows, len(shown), available)
    figure.suptitle(heading, x=0.01, horizontalalignment="left", fontsize=11, fontweight="bold")
    return figure


def _blank(data: FederatedDataset, rows: int, per_row: int, kind: Kind) -> Figure:
    """An empty figure with room for so many samples, their labels and a title."""
    height, width = (data.sample_shape or ())[-2:] if kind in ("image", "spectrogram") else (1, 1)
    wide, high = {
        "image": (_IMAGE, _IMAGE * min(height / width, 2)),
        "spectrogram": (1.5, 0.75),
        "series": (1.5, 0.75),
        "text": (_TEXT / per_row, 0.55),
    }[kind]
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.0, hspace=0.0)
    return Figure(figsize=(1.2 + per_row * wide, 0.4 + rows * high), layout=layout)


def _kind(data: FederatedDataset) -> Kind:
    if not isinstance(data.encoding, Affine):
        return "text"
    return "image" if len(data.sample_shape or ()) == 3 else "series"


def _evenly(ids: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many of *ids*, from the first to the last."""
    return ids[np.unique(np.linspace(0, len(ids) - 1, min(most, len(ids))).round().astype(np.int64))]


def _title(data: FederatedDataset, rows: str, shown: int, available: int) -> str:
    kinds = "classes" if rows == "class" else "clients"
    number = f"{available:,}" if shown == available else f"{shown} of {available:,}"
    return plain(f"Samples of {data.name}: {number} {kinds}")


def _limits(data: FederatedDataset, ids: NDArray[np.int64], kind: Kind) -> tuple[float, float]:
    """The smallest and the largest value of all samples that are shown."""
    if kind == "text" or not len(ids):
        return 0.0, 1.0
    values = data.samples(ids)
    return float(values.min()), float(values.max())


def _bare(ax: Axes) -> None:
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _label(ax: Axes, data: FederatedDataset, rows: str, label: int) -> None:
    name = data.class_names[label] if rows == "class" and data.class_names else f"{rows} {label}"
    wrapped = "\n".join(textwrap.wrap(plain(name), 16)) or repr(name)
    ax.set_ylabel(wrapped, rotation=0, horizontalalignment="right", verticalalignment="center", labelpad=6)


def _draw(
    data: FederatedDataset,
    ax: Axes,
    sample: int,
    kind: Kind,
    limits: tuple[float, float],
    decode: Callable[[NDArray[Any]], str] | None,
) -> None:
    stored = data.rows(np.array([sample]))
    if kind == "text":
        _write(ax, decode(stored[0]) if decode else " ".join(map(str, stored.reshape(-1))))
        return
    values = data.encoding.decode(stored)[0]
    if kind == "series":
        for channel, line in enumerate(np.atleast_2d(values)):
            ax.plot(line, color=_LINES[channel % len(_LINES)], linewidth=0.9)
    elif kind == "spectrogram":
        ax.imshow(values[0], cmap="magma", vmin=limits[0], vmax=limits[1], aspect="auto", origin="lower")
    elif len(values) == 3:
        low, high = limits
        ax.imshow(np.moveaxis((values - low) / max(high - low, 1e-12), 0, -1))
    else:
        ax.imshow(values[0], cmap="gray", vmin=limits[0], vmax=limits[1])


def _write(ax: Axes, text: str) -> None:
    """As many lines as have room, at the width of a cell."""
    width = int(_TEXT / ax.get_gridspec().ncols / _CHARACTER) - 2  # type: ignore[union-attr]
    shown = text.replace("\n", "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}").replace("$", r"\$")
    lines = textwrap.wrap(shown, width, max_lines=_TEXT_LINES, placeholder=" ...")
    words = ax.text(0, 0.5, "\n".join(lines), family="DejaVu Sans Mono", fontsize=7, verticalalignment="center")
    words.set_in_layout(False)
