"""The x axis of curves: in the unit that fits, or logarithmic."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from fedsim.viz.human import scale
from fedsim.viz.log_marks import log_marks
from fedsim.viz.series import runs_of

__all__ = ["is_logarithmic", "labelled_x", "scaled_x"]

_LOG_RATIO = 10.0  # an axis is logarithmic when protocols end that far apart


def scaled_x(rounds: pd.DataFrame, ax: Axes, column: str, label: str, quantity: str) -> Axes:
    """Label the x axis in the unit that fits; logarithmic, with a unit at each mark, where protocols end far apart."""
    scored = rounds.dropna(subset=["loss"])
    ends = scored.groupby([runs_of(scored), "protocol"])[column].max()
    return labelled_x(ax, scored[column].min(), ends, label, quantity)


def labelled_x(ax: Axes, smallest: float, ends: pd.Series[float], label: str, quantity: str) -> Axes:
    """The same for what begins at *smallest* and *ends* at several places."""
    if is_logarithmic(smallest, ends):
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_locator(_LogMarks(quantity))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: log_marks(quantity, value, value).get(value, "")))
        ax.set_xlabel(f"{label} (logarithmic)")
        return ax
    unit, name = scale(quantity, ends.max())
    ax.xaxis.set_major_locator(_MultiplesOf(unit))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / unit:g}"))
    ax.set_xlabel(f"{label}, {name}")
    return ax


def is_logarithmic(smallest: float, ends: pd.Series[float]) -> bool:
    """Whether what begins at *smallest* *ends* so far apart that a linear axis would hide the shorter ones."""
    return bool(smallest > 0 and ends.max() / ends.min() >= _LOG_RATIO)


class _LogMarks(LogLocator):
    """Marks that are round numbers in units that fit."""

    def __init__(self, quantity: str) -> None:
        super().__init__()
        self._quantity = quantity

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Those between *vmin* and *vmax*."""
        return list(log_marks(self._quantity, *sorted((vmin, vmax))))


class _MultiplesOf(MaxNLocator):
    """Marks that are round numbers in a unit."""

    def __init__(self, unit: float) -> None:
        super().__init__(nbins="auto", steps=[1, 2, 2.5, 5, 10])
        self._unit = unit

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Round numbers of units between *vmin* and *vmax*."""
        return [self._unit * mark for mark in super().tick_values(vmin / self._unit, vmax / self._unit)]
