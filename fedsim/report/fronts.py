"""Pareto fronts: which protocols no other one beats in both what they reach and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import altair as alt
import pandas as pd

from fedsim.metrics.pareto import pareto_front
from fedsim.report.charts import Row, Spec, colours, layer_of, not_hidden, specification
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet
from fedsim.viz.figures import Score, score_of
from fedsim.viz.human import number, scale
from fedsim.viz.series import runs_of

__all__ = ["fronts"]

_HEIGHT = 260


def fronts(summary: pd.DataFrame, lines: Lines) -> Section | None:
    """The score against time and against traffic, of the simulated runs; None unless two have a score."""
    score = score_of(summary, "final_accuracy")
    columns = [score.column, "sim_time_s", "transfer_bytes"]
    events = summary[summary["accounting"] == "event"]
    means = events.groupby([runs_of(events), "protocol"], sort=False)[columns].mean()
    means = means[means[score.column].abs() < math.inf].dropna()
    if len(means) < 2:
        return None
    words = (
        "A protocol is on the front if no other one is at least as good in both, and better in one. These are means "
        "over seeds: whether two points that are close really differ, the intervals above tell."
    )
    pictures = [
        _picture(means, score, lines, "sim_time_s", "simulated time", "seconds"),
        _picture(means, score, lines, "transfer_bytes", "sent and received by all clients", "bytes"),
    ]
    return Section("front", "Pareto front", words, pictures=pictures)


def _picture(means: pd.DataFrame, score: Score, lines: Lines, column: str, label: str, quantity: str) -> Picture:
    unit, name = scale(quantity, means[column].max())
    larger = score.column == "final_accuracy"
    on_front = pareto_front(means[[score.column, column]].to_numpy(), (larger, False))
    found = [
        (lines.entry(str(run), str(protocol)), float(row[score.column]), float(row[column]) / unit, bool(front))
        for (run, protocol), row, front in zip(means.index.to_list(), means.to_dict("records"), on_front, strict=True)
    ]
    title = f"{score.title} against {'simulated time' if quantity == 'seconds' else 'traffic'}"
    shown = f"{label}, {name}"
    cells = pd.DataFrame(
        {
            "protocol": [entry.name for entry, *_ in found],
            score.label: [number(value) for _, value, _, _ in found],
            shown: [number(cost) for _, _, cost, _ in found],
            "on the front": ["yes" if front else "no" for *_, front in found],
        }
    )
    better = "Better is up and to the left" if larger else "Better is down and to the left"
    caption = f"{better}. Full marks, joined by a line, are the front; hollow ones are beaten."
    entries = [replace(entry, dashes=()) for entry, *_ in found]
    rows = list(_rows(found))
    spec = _chart(rows, entries, shown, score.label)
    key = "front-of-time" if quantity == "seconds" else "front-of-traffic"
    return Picture(key, title, caption, Sheet(f"{title}: means over seeds", cells), spec, legend=entries)


def _rows(found: list[tuple[Entry, float, float, bool]]) -> Iterator[Row]:
    for entry, value, cost, front in found:
        yield {
            "line": entry.line,
            "name": entry.name,
            "x": cost,
            "y": value,
            "filled": 1.0 if front else 0.0,
            "front": "yes" if front else "no",
        }


def _chart(rows: list[Row], entries: list[Entry], x: str, y: str) -> Spec:
    across = alt.X("x:Q", scale=alt.Scale(zero=False, padding=20), axis=alt.Axis(title=x, tickCount=6))
    up = alt.Y("y:Q", scale=alt.Scale(zero=False, padding=20), axis=alt.Axis(title=y, tickCount=6))
    base = layer_of("points").encode(x=across, y=up)
    front = base.transform_filter("datum.filled == 1").mark_line(color="#9aa1a9", strokeWidth=1.2, interpolate="linear")
    dots = (
        not_hidden(base)
        .mark_point(size=130, strokeWidth=2.2, opacity=1)
        .encode(
            color=alt.Color("line:N", scale=colours(entries), legend=None),
            fill=alt.Color("line:N", scale=colours(entries), legend=None),
            fillOpacity=alt.FillOpacity("filled:Q", scale=None),
            tooltip=[
                alt.Tooltip("name:N", title="protocol"),
                alt.Tooltip("x:Q", title=x, format=".4~g"),
                alt.Tooltip("y:Q", title=y, format=".4~g"),
                alt.Tooltip("front:N", title="on the front"),
            ],
        )
    )
    return specification(front, dots, tables={"points": rows}, height=_HEIGHT, lines=True)
