"""Which lines and bars there are in a figure of one or several runs, how they look, and what the legend says.

A table of several runs has a column ``run``. Colour and marker are the protocol, in all runs; the line is the run.
Where all runs have one and the same protocol, colour, line and marker are the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from fedsim.viz.names import fitted
from fedsim.viz.style import COLOURS, GREY, LINES, Look, looks, plain

__all__ = ["Looks", "Series", "runs_of", "series_of"]

Looks: TypeAlias = Mapping[str, Look]
"""Of each protocol."""

_Key: TypeAlias = tuple[str, str]
"""Run and protocol; the run is "" where there is one only."""
_LETTERS = 36  # of a line in a legend
_LETTERS_PER_INCH = 11.5
_HANDLE_LETTERS = 7
_BESIDE_ROWS, _TITLE_INCHES, _GAP, _LINE_INCHES = 0.3, 0.14, 0.07, 0.16


@dataclass(frozen=True)
class Series:
    """The lines of a figure, by run and protocol; the run is "" where there is one only."""

    looks: Mapping[_Key, Look]
    title: str = ""
    """What the legend says above its entries."""
    entries: Sequence[Line2D] = field(default=())
    """What the legend has."""

    @property
    def runs(self) -> list[str]:
        """Each once, in order."""
        return list(dict.fromkeys(run for run, _ in self.looks))

    @property
    def protocols(self) -> list[str]:
        """Each once, in order."""
        return list(dict.fromkeys(protocol for _, protocol in self.looks))

    @property
    def grouped(self) -> bool:
        """Whether some run among several has several protocols."""
        return 1 < len(self.runs) < len(self.looks)

    @property
    def panels(self) -> bool:
        """Whether there are too many lines of a protocol, or too many protocols, so that each run needs a picture."""
        if len(self.runs) < 2 or len(self.protocols) < 2:
            return False
        lines = len(self.runs) if self.grouped else max(Counter(protocol for _, protocol in self.looks).values())
        return lines > len(LINES) or (self.grouped and len(self.protocols) > len(COLOURS))

    def name(self, run: str, protocol: str) -> str:
        """What one of them is called."""
        if len(self.runs) == 1:
            return protocol
        return run if len(self.protocols) == 1 else f"{protocol}, {run}"

    def legend_beside(self, ax: Axes) -> None:
        """A legend to the right of *ax*, so that it covers nothing."""
        if self.entries:
            legend = ax.legend(
                handles=self.entries, bbox_to_anchor=(1.02, 1.0), loc="upper left", borderaxespad=0.0, **self._titles()
            )
            _grey_title(legend)

    def legend_below(self, figure: Figure) -> None:
        """A legend under all axes of *figure*."""
        if self.entries:
            columns = self._columns(figure.get_figwidth())
            legend = figure.legend(handles=self.entries, loc="outside lower center", ncols=columns, **self._titles())
            _grey_title(legend)

    def legend_inches(self, width: float) -> float:
        """About how high the legend is below a figure of this *width*, in inches."""
        labels = [str(entry.get_label()).split("\n") for entry in self.entries]
        rows = -(-len(labels) // self._columns(width))
        titles = self.title.count("\n") + 1 if self.title else 0
        return _BESIDE_ROWS + _TITLE_INCHES * titles + rows * (_GAP + _LINE_INCHES * max(map(len, labels), default=0))

    def _columns(self, width: float) -> int:
        longest = max((len(line) for entry in self.entries for line in str(entry.get_label()).split("\n")), default=0)
        return max(1, min(int(width * _LETTERS_PER_INCH // (longest + _HANDLE_LETTERS)), len(self.entries)))

    def _titles(self) -> dict[str, str]:
        return {"title": self.title, "title_fontsize": "small", "alignment": "left"}


def _grey_title(legend: Legend) -> None:
    legend.get_title().set_color(GREY)


def series_of(table: pd.DataFrame, styles: Looks | None = None, notes: Mapping[_Key, str] | None = None) -> Series:
    """The series of a *table* with a column ``protocol`` and, if it is of several runs, ``run``.

    *styles* keeps a protocol's look the same over several figures. *notes* are added to the names in the legend.
    """
    series = _looks_of(list(dict.fromkeys(zip(runs_of(table), table["protocol"].astype(str), strict=True))), styles)
    entries = _of_groups if series.grouped or series.panels else _of_lines
    return Series(series.looks, _title(series), list(entries(series, notes or {})))


def _of_lines(series: Series, notes: Mapping[_Key, str]) -> Iterator[Line2D]:
    """An entry for each line."""
    names = fitted((series.name(*key) for key in series.looks), _LETTERS)
    for key, look in series.looks.items():
        yield _entry(look, _noted(names[series.name(*key)], notes.get(key, "")))


def _of_groups(series: Series, notes: Mapping[_Key, str]) -> Iterator[Line2D]:
    """An entry for each protocol and, where lines tell runs apart, for each run; and one for each of the *notes*."""
    of_protocols = {protocol: look for (_, protocol), look in series.looks.items()}
    protocols, runs = fitted(of_protocols, _LETTERS), fitted(series.runs, _LETTERS)
    for protocol, look in of_protocols.items():
        yield _entry(look if series.panels else look.in_run(0), protocols[protocol])
    for number, run in enumerate(() if series.panels else series.runs):
        yield _entry(Look(GREY, LINES[number], ""), runs[run])
    names = fitted((series.name(*key) for key in notes), _LETTERS)
    for key, note in notes.items():
        entry = _entry(Look(series.looks[key].colour, "-", "X"), _noted(names[series.name(*key)], note))
        entry.set_linestyle("")
        yield entry


def _looks_of(keys: Sequence[_Key], styles: Looks | None) -> Series:
    """How each line looks: by its protocol, and by its run where there are several."""
    runs = list(dict.fromkeys(run for run, _ in keys))
    by_protocol = styles or looks(protocol for _, protocol in keys)
    if len(by_protocol) == 1 and len(runs) > 1:
        by_run = looks(runs)
        return Series({key: by_run[key[0]] for key in keys})
    series = Series({key: by_protocol[key[1]] for key in keys})
    if len(runs) < 2 or series.panels:
        return series
    if series.grouped:
        return Series({(run, protocol): look.in_run(runs.index(run)) for (run, protocol), look in series.looks.items()})
    before: Counter[str] = Counter()
    alone = {}
    for (run, protocol), look in series.looks.items():
        alone[run, protocol] = look.in_run(before[protocol])
        before[protocol] += 1
    return Series(alone)


def _title(series: Series) -> str:
    if len(series.runs) < 2 or series.panels:
        return ""
    if len(series.protocols) == 1:
        (name,) = fitted(series.protocols, _LETTERS).values()
        return plain(f"{name}; colour, line and marker: run")
    return "colour and marker: protocol; line: run" if series.grouped else "colour and marker: protocol"


def runs_of(table: pd.DataFrame) -> pd.Series[str]:
    """The run of each row; "" where the table is of one only."""
    return table["run"].astype(str) if "run" in table else pd.Series("", index=table.index)


def _noted(name: str, note: str) -> str:
    apart = "\n" if note and len(name) + len(note) > _LETTERS else " "
    return f"{name}{apart}{note}" if note else name


def _entry(look: Look, label: str) -> Line2D:
    return Line2D(
        [],
        [],
        color=look.colour,
        linestyle=look.line,
        marker=look.marker,
        linewidth=1.8,
        markersize=4.5,
        label=plain(label),
    )
