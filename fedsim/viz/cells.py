"""Columns of comparisons as text: means with intervals, medians and bounds, with units in the cells or in the head."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from fedsim.viz.human import number, scale, with_half_width

__all__ = ["Column", "cell", "column_cells", "in_units", "is_told"]

_ENDS = ("mean", "median", "above")


@dataclass(frozen=True)
class Column:
    """One metric of `fedsim.compare`."""

    metric: str
    title: str
    quantity: str | None = None
    """What `fedsim.viz.human.scale` takes; None for a number without a unit."""
    asked: bool = False
    """Whether it is shown only to those who ask for it."""


def is_told(comparison: pd.DataFrame, column: Column) -> bool:
    """Whether any row has something to show there: a mean, a median or a bound."""
    return bool(comparison[_told(comparison, column)].notna().any(axis=None))


def column_cells(comparison: pd.DataFrame, column: Column, *, units_in_head: bool = False) -> tuple[str, list[str]]:
    """The title and a text for each row; *units_in_head* has one unit for all rows, and it is in the title."""
    rows = [row for _, row in comparison.iterrows()]
    if not (units_in_head and column.quantity):
        return column.title, [cell(row, column) for row in rows]
    values = comparison[_told(comparison, column)].to_numpy(dtype=float)
    unit, name = scale(column.quantity, max(values[values < math.inf], default=math.nan))
    return f"{column.title} ({name})", [cell(row, column, unit) for row in rows]


def _told(comparison: pd.DataFrame, column: Column) -> list[str]:
    """The columns of *comparison* with what its cells are about."""
    return [name for end in _ENDS if (name := f"{column.metric}_{end}") in comparison]


def in_units(
    title: str, values: Iterable[float], quantity: str, *, units_in_head: bool = False
) -> tuple[str, list[str]]:
    """The title and a text for each number, with the unit that fits; empty where it is not known."""
    listed = list(values)
    if not units_in_head:
        return title, [_in_a_unit(value, quantity) for value in listed]
    unit, name = scale(quantity, max((value for value in listed if not math.isnan(value)), default=math.nan))
    return f"{title} ({name})", ["" if math.isnan(value) else number(value / unit) for value in listed]


def cell(row: pd.Series, column: Column, unit: float | None = None) -> str:
    """A mean, or ``median 3.2 h (2 of 3)`` and ``> 5.2 h (1 of 3)`` where a target was not reached on all seeds."""
    mean, known = row[f"{column.metric}_mean"], row[f"{column.metric}_n"]
    of = "" if known == row["n"] or row["n"] == 1 else f" ({known} of {row['n']})"
    if not math.isnan(mean):
        return f"{_number(column, unit, mean, row[f'{column.metric}_half_width'])}{of}"
    median, above = (row.get(f"{column.metric}_{end}", math.nan) for end in ("median", "above"))
    if above == math.inf:
        return f"never{of}"
    if not math.isnan(above):
        return f"> {_number(column, unit, above)}{of}"
    return "" if math.isnan(median) else f"median {_number(column, unit, median)}{of}"


def _number(column: Column, unit: float | None, value: float, half_width: float = math.nan) -> str:
    """With its unit, unless the head has it."""
    if unit is not None:
        return with_half_width(value / unit, half_width / unit)
    own, name = scale(column.quantity, value) if column.quantity else (1.0, "")
    return f"{with_half_width(value / own, half_width / own)} {name}".rstrip()


def _in_a_unit(value: float, quantity: str) -> str:
    if math.isnan(value):
        return ""
    unit, name = scale(quantity, value)
    return f"{number(value / unit)} {name}"
