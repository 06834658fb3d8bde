"""What a whole sweep found over the keys that it varied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd

from fedsim.experiment.results import Results
from fedsim.experiment.sweep.results import sweep_of
from fedsim.report.charts import Row, Spec, colours, dashes, layer_of, not_hidden, specification
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet
from fedsim.viz.axes import is_logarithmic
from fedsim.viz.cells import Column, column_cells
from fedsim.viz.sweep_panels import (
    MOST_PANELS,
    Metric,
    drawn_metrics,
    drawn_rows,
    is_numeric,
    name_of,
    panels_by,
    sorted_values,
)

__all__ = ["varied"]

_HEIGHT = 240
_LETTERS = 100
"""Of a value in a title."""
_LEVEL, _LEVEL_IN_ALL = 6, 30
"""Letters of a name, and of all of them, that fit below an axis without a slope."""
_ALL_NAMED = 12
"""Of so many names, at most, each stands below the axis; of more, those that have room."""


def varied(results: Sequence[Results], lines: Lines) -> Section | None:
    """Accuracy, time and traffic over a key, as in ``fedsim plot``; None unless *results* are all points of a sweep."""
    sweep = sweep_of(results)
    if sweep is None:
        return None
    events, drawn = drawn_rows(sweep.compare(), sweep.manifest.short_keys)
    if not drawn:
        return None
    panels = list(panels_by(events, drawn[1:], letters=_LETTERS))
    whiskers = ", and a whisker is the 95 % interval" if (events["n"] > 1).any() else ""
    others = " Each combination of the other keys has its own charts." if len(panels) > 1 else ""
    words = f"The means over seeds at each point of the sweep. A line is a protocol{whiskers}.{others}"
    entries = lines.over_runs()
    pictures = [
        over.picture(number, said, part)
        for over in (_over(drawn[0], metric, events, entries) for metric in drawn_metrics(events))
        for number, (said, part) in enumerate(panels[:MOST_PANELS], start=1)
    ]
    return Section("varied", "Varied keys", words, pictures=pictures, missing=list(_left_out(len(panels))))


def _left_out(panels: int) -> Iterator[str]:
    if panels > MOST_PANELS:
        yield f"The other keys have {panels} combinations, and charts are drawn of the first {MOST_PANELS}."


@dataclass(frozen=True)
class _Over:
    """A metric over a key, on the same axes in all charts of it."""

    key: str
    metric: Metric
    entries: Mapping[str, Entry]
    """Of the protocols."""
    unit: float
    label: str
    most: float
    """What no value exceeds."""
    lowest: float
    highest: float
    """Of all values with their intervals."""
    across: alt.X
    places: Sequence[object] | None
    """The values of the key from left to right; None for numbers, which stand where they are."""

    def picture(self, number: int, said: str, part: pd.DataFrame) -> Picture:
        """Of one combination of the other keys, which is *said*."""
        title = f"{self.metric.title} over {self.key}" + (f", {said}" if said else "")
        return Picture(
            f"varied-{self.metric.name}-{number}",
            title,
            f"{self.label[0].upper()}{self.label[1:]}, at each value of {self.key}.",
            self._sheet(title, part),
            self._chart(part),
            legend=list(self.entries.values()),
        )

    def _sheet(self, title: str, part: pd.DataFrame) -> Sheet:
        metric = self.metric
        _, cells = column_cells(part, Column(metric.column, metric.label, metric.quantity))
        names = [self.entries[str(protocol)].name for protocol in part["protocol"]]
        table = pd.DataFrame({self.key: part[self.key].map(name_of), "protocol": names, metric.label: cells})
        return Sheet(f"{title}: means over seeds, ± half of the 95 % interval", table, names=2)

    def _rows(self, part: pd.DataFrame) -> Iterator[Row]:
        for row in part.to_dict("records"):
            value, entry = row[self.key], self.entries[str(row["protocol"])]
            mean, half = (row[f"{self.metric.column}_{what}"] / self.unit for what in ("mean", "half_width"))
            known = not math.isnan(half)
            yield {
                **{"line": entry.line, "name": entry.name, "value": name_of(value)},
                **{"x": value if self.places is None else self.places.index(value), "mean": mean},
                "low": max(0.0, mean - half) if known else None,
                "high": min(self.most, mean + half) if known else None,
            }

    def _chart(self, part: pd.DataFrame) -> Spec:
        entries = list(self.entries.values())
        reach = alt.Scale(zero=False, domain=[self.lowest, self.highest], padding=8)
        colour = alt.Color("line:N", scale=colours(entries), legend=None)
        base = not_hidden(layer_of("points")).encode(x=self.across, color=colour)
        up = alt.Y("mean:Q", scale=reach, axis=alt.Axis(title=self.label, tickCount=5))
        whisker = base.mark_rule(strokeWidth=1.4).encode(y=alt.Y("low:Q", title=self.label), y2="high:Q")
        whiskers = [whisker] if (part["n"] > 1).any() else []  # Vega warns of a layer without points
        line = base.mark_line(strokeWidth=2).encode(
            y=up, strokeDash=alt.StrokeDash("line:N", scale=dashes(entries), legend=None)
        )
        dots = base.mark_circle(size=60, opacity=1.0).encode(
            y=up,
            tooltip=[
                alt.Tooltip("name:N", title="protocol"),
                alt.Tooltip("value:N", title="value"),
                alt.Tooltip("mean:Q", title=self.label, format=".4~g"),
            ],
        )
        return specification(*whiskers, line, dots, tables={"points": self._rows(part)}, height=_HEIGHT, lines=True)


def _over(key: str, metric: Metric, events: pd.DataFrame, entries: Mapping[str, Entry]) -> _Over:
    unit, label = metric.unit(events)
    most = 1.0 if metric.column == "final_accuracy" else math.inf
    means, halves = events[f"{metric.column}_mean"], events[f"{metric.column}_half_width"].fillna(0.0)
    known = means.abs() < math.inf
    low, high = (means - halves)[known].clip(lower=0.0).min(), (means + halves)[known].clip(upper=most).max()
    across = _numbers(events[key]) if is_numeric(events[key]) else _texts(events[key])
    places = None if is_numeric(events[key]) else sorted_values(events[key])
    return _Over(key, metric, entries, unit, label, most, low / unit, high / unit, across, places)


def _numbers(values: pd.Series[float]) -> alt.X:
    log = is_logarithmic(values.min(), values)
    marks = sorted({float(value) for value in values})
    scale = alt.Scale(type="log" if log else "linear", domain=[marks[0], marks[-1]], nice=False, padding=14)
    # Without this format Vega rounds marks to the distance of those that it would choose itself.
    axis = alt.Axis(title="value (logarithmic)" if log else "value", values=marks, format=".9~g")
    return alt.X("x:Q", scale=scale, axis=axis)


def _texts(values: pd.Series[float]) -> alt.X:
    names = {str(value) for value in values}
    level = max(map(len, names)) <= _LEVEL and sum(map(len, names)) <= _LEVEL_IN_ALL
    axis = alt.Axis(title=None, labelAngle=0 if level else -45, labelLimit=110, labelOverlap=len(names) > _ALL_NAMED)
    return alt.X("value:N", sort=alt.EncodingSortField(field="x", op="min"), axis=axis)
