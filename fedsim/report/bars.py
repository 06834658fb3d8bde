"""Horizontal bars with their value below their name, and the interval of a mean as a whisker."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from fedsim.report.charts import NAMES, Row, Spec, bars_height, layer_of, specification
from fedsim.report.parts import apart
from fedsim.viz.style import DARK

__all__ = ["Bar", "bar_chart"]

_LETTERS = 27
"""Of each of the two lines of a name beside a bar."""


@dataclass(frozen=True)
class Bar:
    """One bar, made of parts from left to right; a mean over seeds."""

    name: str
    colour: str
    value: str
    """What it amounts to, with its unit, as text."""
    parts: Sequence[tuple[str, float]]
    """What each part is, and its length."""
    half: float = math.nan
    """Half of the 95 % interval of the whole; NaN where there is none."""
    pale: bool = False
    """For what was not simulated."""


def bar_chart(bars: Sequence[Bar], title: str, *, most: float = math.inf) -> Spec:
    """The specification: the *bars* from top to bottom over an axis with a *title*; whiskers end at 0 and at *most*."""
    labels = apart([bar.name for bar in bars], _LETTERS, lines=2)
    height = bars_height([labels[bar.name] for bar in bars])
    rows, whiskers = list[Row](), list[Row]()
    for place, bar in enumerate(bars):
        label = f"{labels[bar.name]}\n{bar.value}"
        end = 0.0
        for part, (what, length) in enumerate(bar.parts):
            shown = 0.0 if math.isnan(length) else length
            rows.append(
                {
                    "place": place,
                    "label": label,
                    "name": bar.name,
                    "what": what,
                    "value": bar.value,
                    "from": end,
                    "to": end + shown,
                    "part": shown,
                    "colour": bar.colour,
                    "strength": (1.0, 0.45, 0.75, 0.25)[part % 4] * (0.5 if bar.pale else 1.0),
                }
            )
            end += shown
        if bar.half > 0:
            low, high = max(0.0, end - bar.half), max(end, min(most, end + bar.half))
            whiskers.append({"place": place, "label": label, "low": low, "high": high})
    order = alt.EncodingSortField(field="place", op="min", order="ascending")
    y = alt.Y("label:N", sort=order, axis=NAMES)
    across = alt.X("from:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title=title, tickCount=5, grid=True))
    drawn = (
        layer_of("bars")
        .mark_bar(height={"band": 0.58})
        .encode(
            x=across,
            x2="to:Q",
            y=y,
            color=alt.Color("colour:N", scale=None),
            opacity=alt.Opacity("strength:Q", scale=None),
            tooltip=[
                alt.Tooltip("name:N", title="name"),
                alt.Tooltip("what:N", title="what"),
                alt.Tooltip("part:Q", title=title, format=".4~g"),
                alt.Tooltip("value:N", title="in all"),
            ],
        )
    )
    if not whiskers:
        return specification(drawn, tables={"bars": rows}, height=height)
    base = layer_of("whiskers").encode(y=y)
    rules = [
        base.mark_rule(color=colour, strokeWidth=width).encode(x=alt.X("low:Q", title=title), x2="high:Q")
        for colour, width in (("white", 4.0), (DARK, 1.4))  # a white edge, else unseen on a black bar
    ]
    ends = [base.mark_tick(color=DARK, height=9, thickness=1.4).encode(x=f"{end}:Q") for end in ("low", "high")]
    tables = {"bars": rows, "whiskers": whiskers}
    return specification(drawn, *rules, *ends, tables=tables, height=height)
