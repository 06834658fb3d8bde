"""Which lines and bars there are in a figure of one or several runs, how they look, and what the legend says.

A table of several runs has a column ``run``. Colour is the protocol, in all runs; line and marker are the run. Where
all runs have one and the same protocol, colour is the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

from fedsim.viz.style import COLOURS, GREY, Look, looks, plain

__all__ = ["RUNS_BY_LINE", "Looks", "Series", "names_apart", "runs_of", "series_of"]

Looks: TypeAlias = Mapping[str, Look]
"""Of each protocol."""

RUNS_BY_LINE = 4
"""So many runs can be told apart by their lines."""
_LETTERS_PER_INCH = 11.5
_HANDLE_LETTERS = 7


@dataclass(frozen=True)
class Series:
    """The lines of a figure, by run and protocol; the run is "" where there is one only."""

    looks: Mapping[tuple[str, str], Look]
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
    def panels(self) -> bool:
        """Whether there are too many runs for one picture, so that each run needs its own."""
        several = len(self.runs) > 1 and len(self.protocols) > 1
        return several and (len(self.runs) > RUNS_BY_LINE or len(self.protocols) > len(COLOURS))

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
            longest = max(len(str(entry.get_label())) for entry in self.entries)
            columns = int(figure.get_figwidth() * _LETTERS_PER_INCH // (longest + _HANDLE_LETTERS))
            legend = figure.legend(
                handles=self.entries,
                loc="outside lower center",
                ncols=max(1, min(columns, len(self.entries))),
                **self._titles(),
            )
            _grey_title(legend)

    def _titles(self) -> dict[str, str]:
        return {"title": self.title, "title_fontsize": "small", "alignment": "left"}


def _grey_title(legend: Legend) -> None:
    legend.get_title().set_color(GREY)


def series_of(
    table: pd.DataFrame, styles: Looks | None = None, notes: Mapping[tuple[str, str], str] | None = None
) -> Series:
    """The series of a *table* with a column ``protocol`` and, if it is of several runs, ``run``.

    *styles* keeps a protocol's look the same over several figures. *notes* are added to the names in the legend.
    """
    notes = notes or {}
    keys = list(dict.fromkeys(zip(runs_of(table), table["protocol"].astype(str), strict=True)))
    names = list(dict.fromkeys(run for run, _ in keys))
    protocols = list(dict.fromkeys(protocol for _, protocol in keys))
    if len(names) < 2:
        by_protocol = styles or looks(protocols)
        chosen = {key: by_protocol[key[1]] for key in keys}
        return Series(chosen, "", [_line(look, key[1] + notes.get(key, "")) for key, look in chosen.items()])
    if len(protocols) == 1:
        by_run = looks(names)
        chosen = {key: by_run[key[0]] for key in keys}
        entries = [_line(look, key[0] + notes.get(key, "")) for key, look in chosen.items()]
        return Series(chosen, f"{protocols[0]}; colour and line: run", entries)
    by_protocol = styles or looks(protocols)
    chosen = {(run, protocol): by_protocol[protocol].in_run(names.index(run)) for run, protocol in keys}
    series = Series(chosen)
    if series.panels:
        return Series(
            {(run, protocol): by_protocol[protocol] for run, protocol in keys},
            "",
            [_line(by_protocol[protocol], protocol) for protocol in protocols],
        )
    entries = [
        Line2D([], [], color=by_protocol[protocol].colour, linewidth=4, label=plain(protocol)) for protocol in protocols
    ]
    entries += [_line(Look(GREY, "-").in_run(number), run) for number, run in enumerate(names)]
    entries += [
        Line2D([], [], color=chosen[key].colour, linestyle="", marker="X", label=plain(f"{series.name(*key)}{note}"))
        for key, note in notes.items()
    ]
    return Series(chosen, "colour: protocol; line and marker: run", entries)


def runs_of(table: pd.DataFrame) -> pd.Series[str]:
    """The run of each row; "" where the table is of one only."""
    return table["run"].astype(str) if "run" in table else pd.Series("", index=table.index)


def _line(look: Look, label: str) -> Line2D:
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


def names_apart(names: Iterable[str]) -> list[str]:
    """*names* without the words that all of them begin with; none becomes empty.

    >>> names_apart(["plant-lte_m-night", "plant-nb_iot-night"]), names_apart(["lte", "lte-m"]), names_apart(["one"])
    (['lte_m-night', 'nb_iot-night'], ['lte', 'lte-m'], ['one'])
    """
    words = [re.findall(r"[^-/. ]+[-/. ]*|[-/. ]+", name) for name in names]
    shortest = min((len(parts) for parts in words), default=0)
    alike = 0
    while alike < shortest - 1 and len({parts[alike] for parts in words}) == 1:
        alike += 1
    return ["".join(parts[alike if len(words) > 1 else 0 :]) for parts in words]
