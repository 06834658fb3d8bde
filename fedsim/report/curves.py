"""Curves of what was learned: means over seeds with the band of their 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd

from fedsim.metrics.intervals import half_width
from fedsim.report.charts import Row, Spec, colours, dashes, layer_of, log_axis, not_hidden, specification, whole_marks
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet
from fedsim.report.thinning import MOST_POINTS, kept_points
from fedsim.viz.axes import is_logarithmic
from fedsim.viz.figures import score_of
from fedsim.viz.human import number, scale, with_half_width
from fedsim.viz.series import runs_of

__all__ = ["curves"]

_HEIGHT = 300
_BEYOND = 0.3  # of the height of all lines, above and below them
_NEAR = 200  # square pixels
_SHOWN_POINTS = 40
"""Lines of no more points show all of them."""


def curves(rounds: pd.DataFrame, lines: Lines) -> Section | None:
    """The score over time, traffic and rounds, and the loss over rounds; None where nothing was learned."""
    evaluated = rounds.dropna(subset=["loss"])
    if evaluated.empty:
        return None
    runs: Sequence[str | None] = lines.series.runs if lines.series.panels else [None]
    seeds = rounds["seed"].nunique()
    over = "A line is the mean over the seeds, and its band the 95 % interval of the mean. " if seeds > 1 else ""
    words = f"{over}A name above a chart hides its line, in all charts, and shows it again."
    pictures = [picture for run in runs for picture in _of(evaluated, lines, run)]
    return Section("learning", "Learning", words, pictures=pictures, remarks=list(_diverged(evaluated, lines)))


@dataclass(frozen=True)
class _Axis:
    column: str
    title: str
    words: str
    unit: float = 1.0
    log: alt.Axis | None = None
    """Where it is logarithmic."""

    @staticmethod
    def over(evaluated: pd.DataFrame, column: str, title: str, quantity: str) -> _Axis:
        unit, name = scale(quantity, evaluated[column].max())
        ends = evaluated.groupby([runs_of(evaluated), "protocol"])[column].max()
        least, log = evaluated[column].min(), None
        if is_logarithmic(least, ends):
            log = log_axis(quantity, least, ends.max(), unit=unit, title=title)
        words = f"what is {title}" if quantity == "bytes" else title
        return _Axis(column, f"{title}, {name}", f"{words} ({'logarithmic' if log else f'in {name}'})", unit, log)


@dataclass(frozen=True)
class _Point:
    entry: Entry
    round: int
    x: float
    mean: float
    half: float
    seeds: int


@dataclass(frozen=True)
class _Line:
    entry: Entry
    points: Sequence[_Point]
    is_cut: bool
    """Whether some seeds went further."""
    is_thinned: bool


def _of(evaluated: pd.DataFrame, lines: Lines, run: str | None) -> Iterator[Picture]:
    """The four charts: of all runs, or of one."""
    score = score_of(evaluated)
    time = _Axis.over(evaluated, "sim_time_s", "simulated time", "seconds")
    traffic = _Axis.over(evaluated, "transfer_bytes", "sent and received by all clients", "bytes")
    rounds = _Axis("round", "round", "rounds")
    shown = evaluated if run is None else evaluated[runs_of(evaluated) == run]
    place = "" if run is None else f"-{lines.series.runs.index(run) + 1}"
    of_run = "" if run is None else f", {run}"
    loss = f"test loss ({score.loss})"
    for key, title, x, column, label in (
        ("score-over-time", f"{score.title} over simulated time", time, score.column, score.label),
        ("score-over-traffic", f"{score.title} over traffic", traffic, score.column, score.label),
        ("score-over-rounds", f"{score.title} over rounds", rounds, score.column, score.label),
        ("loss-over-rounds", "Loss over rounds", rounds, "loss", loss),
    ):
        yield _picture(f"{key}{place}", f"{title}{of_run}", shown, x, column, label, lines)


def _picture(key: str, title: str, table: pd.DataFrame, x: _Axis, column: str, label: str, lines: Lines) -> Picture:
    found = [_line(entry, rows, x, column) for entry, rows in _by_line(table, lines)]
    points = [point for line in found for point in line.points]
    entries = [line.entry for line in found if line.points]
    most = 1.0 if column == "accuracy" else math.inf
    words = [f"{label[0].upper()}{label[1:]} over {x.words}."]
    if most == 1.0 and any(point.mean + point.half > most or point.mean < point.half for point in points):
        words.append("Bands end at 0 and at 1, which no accuracy exceeds.")
    limits = _limits(points, most)
    if limits:
        words.append("Bands that are much wider than the lines are apart are cut; the table has them.")
    if any(line.is_cut for line in found):
        words.append("A line ends at the last round that all of its seeds reached.")
    if any(line.is_thinned for line in found):
        words.append(f"Longer lines are thinned to {MOST_POINTS:,} points each, which look alike (largest triangles).")
    spec = _chart(points, entries, x, label, most, limits)
    return Picture(key, title, " ".join(words), _sheet(title, points, x, label), spec, legend=entries)


def _by_line(table: pd.DataFrame, lines: Lines) -> Iterator[tuple[Entry, pd.DataFrame]]:
    for (run, protocol), rows in table.groupby([runs_of(table), "protocol"], sort=False):
        yield lines.entry(str(run), str(protocol)), rows


def _line(entry: Entry, rows: pd.DataFrame, x: _Axis, column: str) -> _Line:
    """The line of some rounds: as that of ``fedsim plot``, but thinned where it is long."""
    known = rows[rows[column].abs() < math.inf]
    if known.empty:
        return _Line(entry, [], is_cut=False, is_thinned=False)
    scores = known.pivot(index="round", columns="seed", values=column)
    reached = scores.notna().sum(axis=1)
    complete = reached == reached.max()
    scores = scores[complete]
    across = known.groupby("round")[x.column].mean()[complete]
    means = scores.mean(axis=1)
    kept = kept_points(across, means)
    values = scores.to_numpy()[kept]
    points = [
        _Point(entry, int(scores.index[place]), float(across.iloc[place]), float(means.iloc[place]), half, len(some))
        for place, row in zip(kept, values, strict=True)
        for some in [row[~np.isnan(row)].tolist()]
        for half in [half_width(some)]
    ]
    return _Line(entry, points, is_cut=bool((~complete).any()), is_thinned=len(kept) < len(means))


def _limits(points: Sequence[_Point], most: float) -> tuple[float, float] | None:
    """Where the y axis ends, if bands would make lines unreadable: some way beyond the lines; None if all bands fit."""
    means = [point.mean for point in points]
    lowest, highest = min(means, default=0.0), max(means, default=0.0)
    room = _BEYOND * ((highest - lowest) or abs(highest))
    low, high = max(0.0, lowest - room), min(most, highest + room)
    fits = all(
        max(0.0, point.mean - point.half) >= low and min(most, point.mean + point.half) <= high
        for point in points
        if not math.isnan(point.half)
    )
    return None if fits else (low, high)


def _chart(
    points: Sequence[_Point],
    entries: Sequence[Entry],
    x: _Axis,
    label: str,
    most: float,
    limits: tuple[float, float] | None,
) -> Spec:
    across = alt.Scale(type="log" if x.log else "linear", nice=not x.log, zero=False)
    rounds = [point.round for point in points]
    linear = whole_marks(min(rounds), max(rounds)) if x.column == "round" else alt.Axis(title=x.title, tickCount=6)
    x_axis = x.log or linear
    base = not_hidden(layer_of("points"))
    base = base.encode(
        x=alt.X("x:Q", scale=across, axis=x_axis),
        color=alt.Color("line:N", scale=colours(entries), legend=None),
    )
    reach = alt.Scale(zero=False, domain=list(limits), nice=False) if limits else alt.Scale(zero=False)
    up = alt.Y("mean:Q", scale=reach, axis=alt.Axis(title=label, tickCount=6))
    band = base.mark_area(opacity=0.16, interpolate="linear", clip=True).encode(y="low:Q", y2="high:Q")
    bands = [band] if any(not math.isnan(point.half) for point in points) else []  # Vega warns of one without points
    line = base.mark_line(strokeWidth=2).encode(
        y=up, strokeDash=alt.StrokeDash("line:N", scale=dashes(entries), legend=None)
    )
    dots = [base.mark_circle(opacity=1.0, size=22).encode(y=up)] if len(points) <= _SHOWN_POINTS * len(entries) else []
    # What the pointer meets is larger than what is seen. Vega-Lite's own way to the nearest point loses texts (6.4.1).
    near = base.mark_circle(opacity=0.0, size=_NEAR).encode(
        y=up,
        tooltip=[
            alt.Tooltip("name:N", title="protocol"),
            alt.Tooltip("round:Q", title="round", format=",d"),
            *([] if x.column == "round" else [alt.Tooltip("x:Q", title=x.title, format=".4~g")]),
            alt.Tooltip("mean:Q", title=label, format=".4~g"),
            alt.Tooltip("half:N", title="95 % interval"),
            alt.Tooltip("seeds:Q", title="seeds"),
        ],
    )
    tables = {"points": _rows(points, x, most)}
    return specification(*bands, line, *dots, near, tables=tables, height=_HEIGHT, lines=True)


def _rows(points: Sequence[_Point], x: _Axis, most: float) -> Iterator[Row]:
    for point in points:
        known = not math.isnan(point.half)
        yield {
            "line": point.entry.line,
            "name": point.entry.name,
            "round": point.round,
            "x": point.x / x.unit,
            "mean": point.mean,
            "low": max(0.0, point.mean - point.half) if known else None,
            "high": min(most, point.mean + point.half) if known else None,
            "half": f"± {number(point.half)}" if known else "none, of one seed",
            "seeds": point.seeds,
        }


def _sheet(title: str, points: Sequence[_Point], x: _Axis, label: str) -> Sheet:
    columns = {
        "protocol": [point.entry.name for point in points],
        "round": [f"{point.round:,}" for point in points],
        **({} if x.column == "round" else {x.title: [number(point.x / x.unit) for point in points]}),
        label: [with_half_width(point.mean, point.half) for point in points],
        "seeds": [str(point.seeds) for point in points],
    }
    return Sheet(f"{title}: means over seeds, ± half of the 95 % interval", pd.DataFrame(columns))


def _diverged(evaluated: pd.DataFrame, lines: Lines) -> Iterator[str]:
    for entry, rows in _by_line(evaluated, lines):
        seeds, lost = rows["seed"].nunique(), rows.loc[rows["loss"] == math.inf, "seed"].nunique()
        if lost:
            of_seeds = "" if seeds == 1 else f" on {lost} of {seeds} seeds"
            yield f"{entry.name} diverged{of_seeds}: its loss became infinite, and its line ends before that."
