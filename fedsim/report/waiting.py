"""What rounds were made of, for each protocol of one run: the parts of their critical paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import altair as alt
import numpy as np
import pandas as pd

from fedsim.experiment.explain import has_times, lost_times
from fedsim.experiment.read_results import has_lost
from fedsim.experiment.results import Results
from fedsim.metrics.critical_path import PARTS
from fedsim.report.charts import NAMES, Row, bars_height, layer_of, specification, whole_marks
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet, apart
from fedsim.viz.human import duration, number, scale
from fedsim.viz.style import PART_COLOURS
from fedsim.viz.time_tables import TITLES

__all__ = ["waiting"]

_TABLE = "critical_path.csv"
_MOST_BARS = 60
"""Rounds, or so many equal shares of them, in a chart over rounds."""
_HEIGHT = 220
_LETTERS = 27


def waiting(results: Results, run: str, lines: Lines, place: str) -> Section | None:
    """What each round waited for; None for a run of a version that did not keep it, and where rounds take no time."""
    key, title = f"rounds{place}", "What rounds are made of"
    if _TABLE in lost_times(results):
        return Section(key, title, missing=[f"{title} is not shown: {has_lost(results.folder / _TABLE)}."])
    if not has_times(results, _TABLE) or results.critical_path.empty:
        return None
    table = results.critical_path
    there = [part for part in PARTS if table[f"{part}_s"].any()]
    if not there:
        return None
    columns, entries = (
        [f"{part}_s" for part in there],
        [Entry(None, TITLES[part], PART_COLOURS[part]) for part in there],
    )
    pictures = [_mean_rounds(table, columns, entries, run, lines, place)]
    for protocol, rows in table.groupby("protocol", sort=False):
        if rows["round"].nunique() > 1:
            pictures.append(_over_rounds(rows, columns, entries, lines.entry(run, str(protocol)), place))
    words = (
        "The critical path of a round is the chain of waits, transmissions and computations that its end had to wait "
        "for. Its parts add up to the round. What has no part here would not make a round shorter if it were faster."
    )
    return Section(key, title, words, pictures=pictures)


def _mean_rounds(
    table: pd.DataFrame, columns: Sequence[str], entries: Sequence[Entry], run: str, lines: Lines, place: str
) -> Picture:
    """A bar for each protocol: a mean round, over all rounds and seeds."""
    means = table.groupby("protocol", sort=False)[list(columns)].mean()
    names = [lines.entry(run, str(protocol)).name for protocol in means.index]
    unit, name = scale("seconds", means.sum(axis=1).max())
    totals = means.sum(axis=1).tolist()
    labels = apart(names, _LETTERS, lines=2)
    rows = [
        {
            "place": number_of,
            "label": f"{labels[whose]}\n{duration(total)}",
            "name": whose,
            **_part(entry, start / unit, (start + seconds) / unit),
            "text": duration(seconds),
            "share": seconds / total,
        }
        for number_of, (whose, total, values) in enumerate(zip(names, totals, means.to_numpy().tolist(), strict=True))
        for entry, seconds, start in zip(entries, values, _starts(values), strict=True)
        if seconds > 0
    ]
    chart = (
        layer_of("parts")
        .mark_bar(height={"band": 0.6})
        .encode(
            x=alt.X("from:Q", axis=alt.Axis(title=f"mean round, {name}", tickCount=5)),
            x2="to:Q",
            y=alt.Y("label:N", sort=alt.EncodingSortField(field="place", op="min", order="ascending"), axis=NAMES),
            color=alt.Color("colour:N", scale=None),
            tooltip=[
                alt.Tooltip("name:N", title="protocol"),
                alt.Tooltip("part:N", title="part"),
                alt.Tooltip("text:N", title="of a mean round"),
                alt.Tooltip("share:Q", title="share", format=".1%"),
            ],
        )
    )
    cells = pd.DataFrame({"protocol": names, f"round, {name}": [number(total / unit) for total in totals]})
    for column, entry in zip(columns, entries, strict=True):
        cells[f"{entry.name}, {name}"] = [number(seconds / unit) for seconds in means[column]]
    sheet = Sheet(f"Parts of a mean round, in {name}: means over rounds and seeds", cells)
    caption = f"The mean round over all rounds and seeds, in {name}; its length stands below each name."
    spec = specification(chart, tables={"parts": rows}, height=bars_height(labels.values()))
    return Picture(f"mean-round{place}", "Parts of a mean round", caption, sheet, spec, legend=entries)


def _over_rounds(
    rows: pd.DataFrame, columns: Sequence[str], entries: Sequence[Entry], protocol: Entry, place: str
) -> Picture:
    """A bar for each round of one protocol, or for each share of its rounds."""
    means = rows.groupby("round")[list(columns)].mean()
    rounds = means.index.to_numpy()
    size = -(-len(rounds) // _MOST_BARS)
    share = np.arange(len(rounds)) // size
    first, last = (pd.Series(rounds).groupby(share).agg(which) for which in ("min", "max"))
    bars = means.groupby(share).mean()
    unit, name = scale("seconds", bars.sum(axis=1).max())
    seeds = rows["seed"].nunique()
    found, axis = list(_bars(bars, first, last, entries, unit)), whole_marks(int(rounds[0]), int(rounds[-1]))
    chart = (
        layer_of("parts")
        .mark_bar(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("begin:Q", scale=alt.Scale(nice=False, zero=False), axis=axis),
            x2="end:Q",
            y=alt.Y("from:Q", axis=alt.Axis(title=f"length of a round, {name}", tickCount=5)),
            y2="to:Q",
            color=alt.Color("colour:N", scale=None),
            tooltip=[
                alt.Tooltip("rounds:N", title="round"),
                alt.Tooltip("part:N", title="part"),
                alt.Tooltip("text:N", title="length"),
            ],
        )
    )
    cells = pd.DataFrame({"round": [_rounds(one, other) for one, other in zip(first, last, strict=True)]})
    cells[f"length, {name}"] = [number(total / unit) for total in bars.sum(axis=1)]
    for column, entry in zip(columns, entries, strict=True):
        cells[f"{entry.name}, {name}"] = [number(seconds / unit) for seconds in bars[column]]
    over = f" mean over {seeds} seeds" if seeds > 1 else ""
    some = f", and over {size} rounds in each bar" if size > 1 else ""
    caption = f"Length of each round by its parts, in {name};{over or ' of one seed'}{some}."
    title = f"Parts of each round, {protocol.name}"
    sheet = Sheet(f"{title}: in {name},{over or ' of one seed'}{some}", cells)
    key = f"rounds-of-{(protocol.line or 0) + 1}{place}"
    return Picture(
        key, title, caption, sheet, specification(chart, tables={"parts": found}, height=_HEIGHT), legend=entries
    )


def _bars(
    bars: pd.DataFrame, first: pd.Series[int], last: pd.Series[int], entries: Sequence[Entry], unit: float
) -> Iterator[Row]:
    for one, other, values in zip(first, last, bars.to_numpy().tolist(), strict=True):
        for entry, seconds, start in zip(entries, values, _starts(values), strict=True):
            if seconds > 0:
                yield {
                    "begin": one - 0.5,
                    "end": other + 0.5,
                    "rounds": _rounds(one, other),
                    **_part(entry, start / unit, (start + seconds) / unit),
                    "text": duration(seconds),
                }


def _part(entry: Entry, start: float, end: float) -> Row:
    return {"part": entry.name, "colour": entry.colour, "from": start, "to": end}


def _starts(values: Sequence[float]) -> list[float]:
    """Where each part begins when they stand one after the other."""
    return [0.0, *np.cumsum(values)[:-1].tolist()]


def _rounds(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"
