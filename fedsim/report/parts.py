"""What a report is made of: sections, and in them pictures and tables, as data without any HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

import pandas as pd

from fedsim.viz.names import on_two_lines, shortened

__all__ = ["Entry", "Picture", "Section", "Sheet", "apart", "unlike"]


@dataclass(frozen=True)
class Sheet:
    """A table of texts; every text may be a user's."""

    caption: str
    """What its rows and numbers are."""
    cells: pd.DataFrame
    names: int = 1
    """How many columns, from the left, say what a row is of; they are flush left."""


@dataclass(frozen=True)
class Entry:
    """A line of a chart, or a part of bars, as its legend shows it."""

    line: int | None
    """Its number in the data of all charts of the report, by which it can be hidden; None of a part of bars."""
    name: str
    colour: str
    dashes: Sequence[float] = ()
    shape: str = ""
    """Of its marks, where they tell it (`fedsim.report.shapes`); then it is no line."""


@dataclass(frozen=True)
class Picture:
    """A chart, or a drawing, and the numbers that are in it."""

    key: str
    """Its name in the page: unique, of letters, digits and dashes, and not a user's text."""
    title: str
    caption: str
    """A sentence or two: what is shown, in which units."""
    sheet: Sheet
    spec: Mapping[str, Any] | None = None
    """A Vega-Lite specification. None for a drawing."""
    drawing: str = ""
    """Clean SVG (`fedsim.report.drawing`), where there is no *spec*."""
    legend: Sequence[Entry] = ()
    """None where the axes name everything."""


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading."""

    key: str
    title: str
    words: str = ""
    """What it answers, in a sentence or two."""
    facts: Sequence[tuple[str, str]] = ()
    """Names and values."""
    remarks: Sequence[str] = ()
    """What could be misread."""
    sheets: Sequence[Sheet] = ()
    pictures: Sequence[Picture] = ()
    listing: str = ""
    """Lines to be shown as they are, folded away: a scenario."""
    missing: Sequence[str] = field(default=())
    """What should be here and is not: a sentence each."""
    run: str = ""
    """Whose it is, where there are several runs and it is of one."""

    @property
    def heading(self) -> str:
        """The title with the run."""
        return f"{self.title}: {self.run}" if self.run else self.title


def apart(names: Sequence[str], letters: int, *, lines: Literal[1, 2] = 1) -> dict[str, str]:
    """Each of *names* on so many *lines* of about so many *letters*; those that would look the same are numbered.

    >>> apart(["line-1/robot-00001/arm", "line-1/robot-00002/arm", "press"], 12)
    {'line-1/robot-00001/arm': 'line-…01/arm', 'line-1/robot-00002/arm': 'line-…02/arm', 'press': 'press'}
    >>> apart(["line-1/robot-1/arm", "line-1/robot-2/arm"], 8)
    {'line-1/robot-1/arm': 'lin…/arm', 'line-1/robot-2/arm': 'lin…/arm (2)'}
    >>> apart(["fedavg, profile=nb_iot_nb1"], 18, lines=2)
    {'fedavg, profile=nb_iot_nb1': 'fedavg,\\nprofile=nb_iot_nb1'}
    """
    shown: dict[str, str] = {}
    for name in dict.fromkeys(names):
        text = shortened(name, letters) if lines == 1 else on_two_lines(shortened(name, 2 * letters), letters)
        numbered = (f"{text} ({number})" for number in count(2))
        shown[name] = text if text not in shown.values() else next(one for one in numbered if one not in shown.values())
    return shown


def unlike(names: Iterable[str]) -> list[str]:
    """The *names* in their order, of which those that an earlier one equals have a number.

    >>> unlike(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    found: list[str] = []
    for name in names:
        found.append(name if name not in found else f"{name} ({found.count(name) + 1})")
    return found
