"""A table of facts that fits a terminal of 100 columns: rows of names and texts, or of names and spreads."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable
from typing import NamedTuple

import pandas as pd

from fedsim.scenario.scalars import printable
from fedsim.units import si

__all__ = ["WIDTH", "DescriptionTable", "Show", "count", "many", "pairs", "rate", "spreads"]

WIDTH = 100
FRAME = 7  # "| ", " | " and " |" of a table of two columns
Show = Callable[[float], str]


class DescriptionTable(NamedTuple):
    """One table, and which of its columns are flush left."""

    cells: pd.DataFrame
    left: tuple[str, ...]


def pairs(title: str, value: str, rows: Iterable[tuple[str, str]]) -> DescriptionTable:
    """Two columns; what is too long for the second is folded."""
    listed = list(rows)
    room = WIDTH - FRAME - max(len(name) for name, _ in [(title, ""), *listed])
    folded: list[tuple[str, str]] = []
    for name, text in listed:
        for position, line in enumerate(textwrap.wrap(printable(text), room) or [""]):
            folded.append(("" if position else name, line))
    heading = textwrap.shorten(printable(value), room, placeholder=" ...")
    return DescriptionTable(pd.DataFrame(folded, columns=[title, heading]), (title, heading))


def spreads(title: str, rows: Iterable[tuple[str, dict[str, float] | None, Show]]) -> DescriptionTable:
    """A row for each spread that is known."""
    cells = [
        {title: name, **{which: show(spread[which]) for which in ("min", "median", "mean", "max")}}
        for name, spread, show in rows
        if spread is not None
    ]
    return DescriptionTable(pd.DataFrame(cells), (title,))


def count(value: float) -> str:
    """A number of things, or the mean of such."""
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"


def rate(value: float) -> str:
    """Bits per second."""
    return "unlimited" if math.isinf(value) else si(value, "bit/s")


def many(count: int, noun: str) -> str:
    """So many of them: ``1 cell``, ``2 cells``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
