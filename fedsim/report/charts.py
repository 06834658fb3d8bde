"""What charts of a report have in common: one look, as wide as their place, and no text of a user but in the data.

A field has a name of ours (``line``, ``x``, ``mean``), and a title says what we mean by it. What a user has named
stands in rows of data: neither Vega-Lite nor Vega takes that for an expression, a field or a link.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

import altair as alt

from fedsim.report.parts import Entry
from fedsim.viz.log_marks import log_marks
from fedsim.viz.style import DARK

__all__ = [
    "NAMES",
    "Row",
    "Spec",
    "bars_height",
    "colours",
    "dashes",
    "layer_of",
    "log_axis",
    "not_hidden",
    "shapes",
    "specification",
    "whole_marks",
]

Row: TypeAlias = Mapping[str, str | float | None]
Spec: TypeAlias = dict[str, Any]
"""A Vega-Lite specification."""
NAMES = alt.Axis(
    title=None, labelExpr="split(datum.label, '\\n')", labelLimit=185, ticks=False, domain=False, labelPadding=6
)
"""The axis of what has names: a line break in a name breaks the line."""
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_CONFIG = alt.Config(
    font=_FONT,
    background="white",
    padding=2,
    view=alt.ViewConfig(stroke=None),
    axis=alt.AxisConfig(
        labelFont=_FONT,
        titleFont=_FONT,
        labelFontSize=12,
        titleFontSize=12,
        titleFontWeight="normal",
        titlePadding=8,
        labelColor=DARK,
        titleColor=DARK,
        gridColor="#e4e7ea",
        domainColor="#c3c8ce",
        tickColor="#c3c8ce",
        labelOverlap=True,
        labelSeparation=6,
    ),
)
_DIGITS = 9
_MARKS = 8


def layer_of(table: str) -> alt.Chart:
    """A layer of a chart, of the rows that `specification` is given by this name."""
    return alt.Chart(alt.NamedData(name=table))


def colours(entries: Sequence[Entry]) -> alt.Scale:
    """The colour of each line, by its number."""
    return alt.Scale(domain=_numbers(entries), range=[entry.colour for entry in entries])


def dashes(entries: Sequence[Entry]) -> alt.Scale:
    """The dashes of each line, by its number."""
    return alt.Scale(domain=_numbers(entries), range=[list(entry.dashes) for entry in entries])


def shapes(entries: Sequence[Entry]) -> alt.Scale:
    """The shape of each mark, by the number of its line."""
    return alt.Scale(domain=_numbers(entries), range=[entry.shape for entry in entries])


def whole_marks(first: int, last: int, title: str = "round") -> alt.Axis:
    """An axis of rounds, or of others that are counted, from the *first* to the *last* one: marks at whole numbers.

    >>> whole_marks(2, 3).values, whole_marks(1, 40).values, whole_marks(7, 7).values
    ([2, 3], [5, 10, 15, 20, 25, 30, 35, 40], [7])
    """
    step = next(step for step in _steps() if last - first < _MARKS * step)
    return alt.Axis(title=title, values=list(range(first + -first % step, last + 1, step)), format=",d")


def log_axis(quantity: str, least: float, most: float, *, unit: float, title: str) -> alt.Axis:
    """A logarithmic axis of seconds or bytes from *least* to *most*, which data counts in a *unit*."""
    marks = log_marks(quantity, least, most)
    values = [value / unit for value in marks]
    label = f"{json.dumps(list(marks.values()))}[indexof({json.dumps(values)}, datum.value)]"
    return alt.Axis(title=f"{title} (logarithmic)", values=values, labelExpr=label)


def _steps() -> Iterator[int]:
    for power in count():
        yield from (1 * 10**power, 2 * 10**power, 5 * 10**power)


def _numbers(entries: Sequence[Entry]) -> list[int]:
    return [entry.line for entry in entries if entry.line is not None]


def specification(
    *layers: alt.Chart,
    tables: Mapping[str, Iterable[Row]],
    height: float,
    lines: bool = False,
) -> Spec:
    """A chart of *layers*: as wide as its place, and *height* pixels high.

    The rows of *tables* have nine digits of each number, and null where it is not finite. If the chart has *lines* that
    can be hidden, it has a parameter ``hidden``: their numbers, which the page sets in all charts at once.
    `not_hidden` makes a layer mind it.
    """
    chart = alt.LayerChart(
        layer=list(layers),
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        config=_CONFIG,
    )
    # Altair would copy and check rows and charts many times. Tests check that each kind of chart fits its schema.
    hidden: Spec = {"params": [{"name": "hidden", "value": []}]} if lines else {}
    rows = {name: [{key: _shortest(value) for key, value in row.items()} for row in tables[name]] for name in tables}
    return {**chart.to_dict(validate=False), **hidden, "datasets": rows}


def bars_height(names: Collection[str]) -> int:
    """Of a chart with a bar for each of *names*, on one or two lines, with its value below; in pixels."""
    lines = 1 + any("\n" in name for name in names)
    return 26 + (23 + 15 * lines) * len(names)


def not_hidden(layer: alt.Chart) -> alt.Chart:
    """The *layer* without the lines that the reader has switched off."""
    return layer.transform_filter("indexof(hidden, datum.line) < 0")


def _shortest(value: str | float | None) -> str | float | None:
    """A number with the digits that a picture can show, and some more; null where it is not finite."""
    if value is None or isinstance(value, str):
        return value
    if not math.isfinite(value):
        return None
    return int(value) if float(value).is_integer() else float(f"{value:.{_DIGITS}g}")
