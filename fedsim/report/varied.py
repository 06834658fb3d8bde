"""What a whole sweep found over the keys that it varied."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import altair as alt
import pandas as pd

from fedsim.experiment.results import Results
from fedsim.experiment.sweep.results import SweepResults, sweep_of
from fedsim.report.charts import Row, Spec, colours, dashes, layer_of, not_hidden, specification
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet
from fedsim.viz.axes import is_logarithmic
from fedsim.viz.cells import Column, column_cells
from fedsim.viz.sweep_panels import (
    MOST_PANELS,
    Metric,
    drawn_keys,
    drawn_metrics,
    is_numeric,
    name_of,
    panels_by,
    sorted_values,
)

__all__ = ["varied"]

_HEIGHT = 240
_LEVEL = 6
"""Letters of a name that fits below an axis without a slope."""
_ALL_NAMED = 12
"""Of so many names, at most, each stands below the axis; of more, those that have room."""


def varied(results: Sequence[Results], lines: Lines) -> Section | None:
    """Each metric over a key, as ``fedsim plot`` draws it; None where *results* are not all the points of a sweep."""
    sweep = sweep_of(results)
    pictures = [] if sweep is None else list(_pictures(sweep, lines.over_runs()))
    if not pictures:
        return None
    words = (
        "What the sweep found at each point: means over seeds, with the 95 % interval as a whisker. A line is a "
        f"protocol. Each combination of other keys has a chart of its own, up to {MOST_PANELS} for a metric."
    )
    return Section("varied", "Varied keys", words, pictures=pictures)


def _pictures(sweep: SweepResults, entries: Mapping[str, Entry]) -> Iterator[Picture]:
    compared = sweep.compare()
    events = compared[compared["accounting"] == "event"]
    keys = drawn_keys(events, sweep.manifest.short_keys)
    if not keys:
        return
    for metric in drawn_metrics(events):
        over = _over(keys[0], metric, events, entries)
        for number, (said, part) in enumerate(islice(panels_by(events, keys[1:]), MOST_PANELS), start=1):
            yield over.picture(number, said, part)


@dataclass(frozen=True)
class _Over:
    """A metric over a key, on the same axes in all charts."""

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
        """Numbers stand where they are on the axis, and all other values side by side."""
        places = None if is_numeric(part[self.key]) else sorted_values(part[self.key])
        for row in part.to_dict("records"):
            value, entry = row[self.key], self.entries[str(row["protocol"])]
            mean, half = (row[f"{self.metric.column}_{what}"] / self.unit for what in ("mean", "half_width"))
            known = not math.isnan(half)
            yield {
                **{"line": entry.line, "name": entry.name, "value": name_of(value)},
                **{"x": value if places is None else places.index(value), "mean": mean},
                "low": max(0.0, mean - half) if known else None,
                "high": min(self.most, mean + half) if known else None,
            }

    def _chart(self, part: pd.DataFrame) -> Spec:
        entries = list(self.entries.values())
        reach = alt.Scale(zero=False, domain=[self.lowest, self.highest], padding=8)
        colour = alt.Color("line:N", scale=colours(entries), legend=None)
        base = not_hidden(layer_of("points")).encode(x=_axis(part[self.key]), color=colour)
        up = alt.Y("mean:Q", scale=reach, axis=alt.Axis(title=self.label, tickCount=5))
        whisker = base.mark_rule(strokeWidth=1.4).encode(y=alt.Y("low:Q", title=self.label), y2="high:Q")
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
        return specification(whisker, line, dots, tables={"points": self._rows(part)}, height=_HEIGHT, lines=True)


def _over(key: str, metric: Metric, events: pd.DataFrame, entries: Mapping[str, Entry]) -> _Over:
    unit, label = metric.unit(events)
    most = 1.0 if metric.column == "final_accuracy" else math.inf
    means, halves = events[f"{metric.column}_mean"], events[f"{metric.column}_half_width"].fillna(0.0)
    known = means.abs() < math.inf
    low, high = (means - halves)[known].clip(lower=0.0).min(), (means + halves)[known].clip(upper=most).max()
    return _Over(key, metric, entries, unit, label, most, low / unit, high / unit)


def _axis(values: pd.Series[float]) -> alt.X:
    if is_numeric(values):
        log = is_logarithmic(values.min(), values)
        marks = sorted({float(value) for value in values})
        scale = alt.Scale(type="log" if log else "linear", zero=False, nice=False, padding=14)
        return alt.X("x:Q", scale=scale, axis=alt.Axis(title="value (logarithmic)" if log else "value", values=marks))
    names = values.map(name_of).drop_duplicates()
    angle = -45 if names.str.len().max() > _LEVEL else 0
    axis = alt.Axis(title=None, labelAngle=angle, labelLimit=110, labelOverlap=len(names) > _ALL_NAMED)
    return alt.X("value:N", sort=alt.EncodingSortField(field="x", op="min"), axis=axis)
