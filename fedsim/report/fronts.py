"""Pareto fronts: which protocols no other one beats in both what they reach and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import altair as alt
import pandas as pd

from fedsim.experiment.fronts import FRONTS
from fedsim.report.charts import Row, Spec, colours, layer_of, log_axis, not_hidden, shapes, specification
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet
from fedsim.viz.axes import is_logarithmic
from fedsim.viz.front_figures import front_score
from fedsim.viz.human import scale, with_half_width
from fedsim.viz.series import runs_of

__all__ = ["fronts"]

_HEIGHT = 260
_ROOM = 1.3
"""Beyond the first and the last point of a logarithmic axis."""
_COSTS = {
    "sim_time_s": ("front-of-time", "simulated time", "simulated time", "seconds"),
    "transfer_bytes": ("front-of-traffic", "traffic", "sent and received by all clients", "bytes"),
}


def fronts(compared: pd.DataFrame, lines: Lines) -> Section | None:
    """The score against time and against traffic, from what `fedsim.compare` returned; None unless two have a score.

    *compared* has a column ``run`` if it is of several runs.
    """
    metric, (title, label) = front_score(compared)
    scored = compared[(compared["accounting"] == "event") & (compared[f"{metric}_mean"].abs() < math.inf)]
    if len(scored) < 2:
        return None
    words = (
        "A protocol is on the front if no other one is at least as good in both, and better in one. The front is one "
        "of means over seeds: it does not tell whether two points that are close really differ."
    )
    pictures = [_picture(scored, front, metric, title, label, lines) for front in FRONTS]
    return Section("front", "Pareto front", words, pictures=pictures)


@dataclass(frozen=True)
class _Point:
    entry: Entry
    cost: float
    cost_half: float
    score: float
    score_half: float
    on_front: bool


def _picture(scored: pd.DataFrame, front: str, metric: str, title: str, label: str, lines: Lines) -> Picture:
    key, name, words, quantity = _COSTS[FRONTS[front]]
    unit, unit_name = scale(quantity, scored[f"{FRONTS[front]}_mean"].max())
    points = list(_points(scored, front, metric, unit, lines))
    shown, larger = f"{words}, {unit_name}", metric == "final_accuracy"
    cells = pd.DataFrame(
        {
            "protocol": [point.entry.name for point in points],
            label: [with_half_width(point.score, point.score_half) for point in points],
            shown: [with_half_width(point.cost, point.cost_half) for point in points],
            "on the front": ["yes" if point.on_front else "no" for point in points],
        }
    )
    title = f"{title} against {name}"
    bars = " Bars are 95 % intervals of both means." if (scored["n"] > 1).any() else ""
    of_runs = " The shape of a mark is its run." if len(lines.series.runs) > 1 else ""
    caption = (
        f"Better is {'up' if larger else 'down'} and to the left. Full marks are on the front, the line; hollow ones "
        f"are beaten.{of_runs}{bars}"
    )
    least, most = _reach(points)
    if least > 0:
        axis = log_axis(quantity, least * unit, most * unit, unit=unit, title=words)
    else:
        axis = alt.Axis(title=shown, tickCount=6)
    reach = alt.Scale(type="log" if least > 0 else "linear", domain=[least, most], nice=False)
    across = alt.X("x:Q", scale=reach, axis=axis)
    rows = list(_rows(points, least=least, most=1.0 if larger else math.inf))
    spec = _chart(points, rows, across, shown, label)
    sheet = Sheet(f"{title}: means over seeds, ± half of the 95 % interval", cells)
    return Picture(key, title, caption, sheet, spec, legend=[point.entry for point in points])


def _points(scored: pd.DataFrame, front: str, metric: str, unit: float, lines: Lines) -> Iterator[_Point]:
    cost = FRONTS[front]
    for run, row in zip(runs_of(scored), scored.to_dict("records"), strict=True):
        yield _Point(
            entry=lines.mark(run, str(row["protocol"])),
            cost=row[f"{cost}_mean"] / unit,
            cost_half=row[f"{cost}_half_width"] / unit,
            score=row[f"{metric}_mean"],
            score_half=row[f"{metric}_half_width"],
            on_front=bool(row[front]),
        )


def _reach(points: list[_Point]) -> tuple[float, float]:
    """Where the axis of costs begins and ends: at 0, unless costs lie so far apart that it is logarithmic."""
    costs = pd.Series([point.cost for point in points])
    end = max(point.cost + (0.0 if math.isnan(point.cost_half) else point.cost_half) for point in points)
    if is_logarithmic(costs.min(), costs):
        return costs.min() / _ROOM, end * _ROOM
    return 0.0, 1.04 * end or 1.0


def _chart(points: list[_Point], rows: list[Row], across: alt.X, x: str, y: str) -> Spec:
    up = alt.Y("y:Q", scale=alt.Scale(zero=False, padding=12), axis=alt.Axis(title=y, tickCount=6))
    step = layer_of("front").mark_line(color="#9aa1a9", strokeWidth=1.2, interpolate="step-after")
    of_lines = colours([point.entry for point in points])
    base = not_hidden(layer_of("points")).encode(color=alt.Color("line:N", scale=of_lines, legend=None))
    wide = base.mark_rule(strokeWidth=1.2).encode(x=alt.X("left:Q"), x2="right:Q", y=up)
    high = base.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", title=y), y2="high:Q", x=across)
    of_marks = shapes([point.entry for point in points])
    full = alt.Fill("line:N", scale=of_lines, legend=None)
    dots = base.mark_point(size=110, strokeWidth=2.2, opacity=1.0).encode(
        x=across,
        y=up,
        shape=alt.Shape("line:N", scale=of_marks, legend=None),
        fill=alt.condition("datum.front === 'yes'", full, alt.value("white")),
        tooltip=[
            alt.Tooltip("name:N", title="protocol"),
            alt.Tooltip("x:Q", title=x, format=".4~g"),
            alt.Tooltip("y:Q", title=y, format=".4~g"),
            alt.Tooltip("front:N", title="on the front"),
        ],
    )
    tables = {"points": rows, "front": _steps(points)}
    return specification(step.encode(x=across, y=up), wide, high, dots, tables=tables, height=_HEIGHT, lines=True)


def _rows(points: list[_Point], *, least: float, most: float) -> Iterator[Row]:
    """Intervals end where costs are *least*, at a score of 0, and where scores are *most*."""
    for point in points:
        wide, high = (0.0 if math.isnan(half) else half for half in (point.cost_half, point.score_half))
        yield {
            **{"line": point.entry.line, "name": point.entry.name, "front": "yes" if point.on_front else "no"},
            **{"x": point.cost, "left": max(least, point.cost - wide), "right": point.cost + wide},
            **{"y": point.score, "low": max(0.0, point.score - high), "high": min(most, point.score + high)},
        }


def _steps(points: list[_Point]) -> Iterator[Row]:
    """The front from its cheapest point on, as far as the dearest of all points: what costs more is not better."""
    best = sorted((point.cost, point.score) for point in points if point.on_front)
    if best:
        for cost, score in [*best, (max(point.cost for point in points), best[-1][1])]:
            yield {"x": cost, "y": score}
