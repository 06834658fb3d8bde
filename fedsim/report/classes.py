"""Device classes, groups, and what was taken for what: where a run has them."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import pandas as pd

from fedsim.experiment.results import Results
from fedsim.metrics.intervals import half_width
from fedsim.report.bars import Bar, bar_chart
from fedsim.report.charts import Row, Spec, colours, dashes, layer_of, not_hidden, specification, whole_marks
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet, unlike
from fedsim.report.thinning import kept_points
from fedsim.viz.human import scale, with_half_width
from fedsim.viz.style import COLOURS, DARK

__all__ = ["confusion", "device_classes", "groups"]

_NUMBERED = 12
"""Of so many classes, at most, each share stands in its cell."""
_HEIGHT = 240
_PARTS = (
    ("uplink_bytes", "uplink of one device", "bytes"),
    ("downlink_bytes", "downlink of one device", "bytes"),
    ("compute_s", "work of one device", "seconds"),
)


def device_classes(results: Results, run: str, lines: Lines, place: str) -> Section | None:
    """What a device of each class sends, receives and computes in the whole run; None where all are of one class."""
    if not (results.folder / "device_classes.csv").exists() or results.device_classes["device_class"].nunique() < 2:
        return None
    table = results.device_classes
    last = table.groupby(["protocol", "device_class", "seed"], sort=False).tail(1)
    pictures = []
    for column, label, quantity in _PARTS:
        each = last.assign(value=last[column] / last["clients"])
        unit, name = scale(quantity, each["value"].max())
        bars, rows = list[Bar](), list[dict[str, str]]()
        for (protocol, kind), seeds in each.groupby(["protocol", "device_class"], sort=False):
            entry, values = lines.entry(run, str(protocol)), (seeds["value"] / unit).tolist()
            mean, half = sum(values) / len(values), half_width(values)
            value = f"{with_half_width(mean, half)} {name}"
            bars.append(Bar(f"{kind}, {entry.name}", entry.colour, value, [(label, mean)], half))
            devices = f"{int(seeds['clients'].iloc[0]):,}"
            rows.append({"device class": str(kind), "protocol": entry.name, "devices": devices, label: value})
        title = f"{label[0].upper()}{label[1:]}"
        caption = f"{title} in the whole run, {name}; the mean over the devices of a class."
        words = f"{title}: means over devices and seeds, ± half of the 95 % interval"
        sheet = Sheet(words, pd.DataFrame(rows), names=2)
        spec = bar_chart(bars, f"{label}, {name}")
        pictures.append(Picture(f"class-{column.replace('_', '-')}{place}", title, caption, sheet, spec))
    words = "How the load is shared between classes of devices."
    return Section(f"device-classes{place}", "Device classes", words, pictures=pictures)


def groups(results: Results, run: str, lines: Lines, place: str) -> Section | None:
    """How many groups there are; None where no protocol forms any."""
    if not (results.folder / "groups.parquet").exists() or results.groups.empty:
        return None
    found, rows = list[Row](), list[dict[str, str]]()
    entries, highest = list[Entry](), 0
    for protocol, table in results.groups.groupby("protocol", sort=False):
        first = table[table["seed"] == table["seed"].min()]
        sizes = first.groupby(["round", "group"]).size().groupby("round").agg(["size", "min", "max"])
        entry = lines.entry(run, str(protocol))
        entries.append(entry)
        for at in kept_points(sizes.index, sizes["size"]):
            drawn, row = int(sizes.index[at]), sizes.iloc[at]
            number, least, most = int(row["size"]), int(row["min"]), int(row["max"])
            highest = max(highest, number)
            members = str(least) if least == most else f"{least} to {most}"
            found.append({"line": entry.line, "name": entry.name, "round": drawn, "number": number, "members": members})
            rows.append({"protocol": entry.name, "round": f"{drawn:,}", "groups": str(number), "members": members})
    rounds = results.groups["round"].tolist()
    chart = (
        not_hidden(layer_of("groups"))
        .mark_line(interpolate="step-after", strokeWidth=2, point=alt.OverlayMarkDef(size=40))
        .encode(
            x=alt.X("round:Q", scale=alt.Scale(nice=False), axis=whole_marks(min(rounds), max(rounds))),
            y=alt.Y("number:Q", scale=alt.Scale(zero=True), axis=whole_marks(0, highest, "groups")),
            color=alt.Color("line:N", scale=colours(entries), legend=None),
            strokeDash=alt.StrokeDash("line:N", scale=dashes(entries), legend=None),
            tooltip=[
                alt.Tooltip("name:N", title="protocol"),
                alt.Tooltip("round:Q", title="round", format=",d"),
                alt.Tooltip("number:Q", title="groups"),
                alt.Tooltip("members:N", title="members of a group"),
            ],
        )
    )
    seed = int(results.groups["seed"].min())
    picture = Picture(
        f"groups-over-rounds{place}",
        "Groups over rounds",
        f"Groups, on seed {seed}; a mark is a round in which groups were formed.",
        Sheet(f"Groups, and how many members they have, on seed {seed}", pd.DataFrame(rows)),
        specification(chart, tables={"groups": found}, height=_HEIGHT, lines=True),
        legend=entries,
    )
    return Section(f"groups{place}", "Groups", "Into how many groups clients were put.", pictures=[picture])


def confusion(results: Results, run: str, lines: Lines, place: str) -> Section | None:
    """A chart for each protocol and test set; None where nothing was counted."""
    if not (results.folder / "confusion.csv").exists():
        return None
    pictures = list(_confusions(results, run, lines, place))
    words = (
        "For each true class (row), the share of its samples that the last model took for each class (column); the "
        "counts of all seeds are added up. A perfect model has the diagonal only."
    )
    return Section(f"confusion{place}", "What was taken for what", words, pictures=pictures)


def _confusions(results: Results, run: str, lines: Lines, place: str) -> Iterator[Picture]:
    table = results.confusion
    keys = ["true_index", "true", "predicted_index", "predicted"]
    sets = list(dict.fromkeys(table["test_set"]))
    for (test_set, protocol), rows in table.groupby(["test_set", "protocol"], sort=False):
        entry = lines.entry(run, str(protocol))
        counts = pd.DataFrame(rows.groupby(keys, sort=True)["count"].sum()).reset_index()
        counts["share"] = counts["count"] / counts.groupby("true_index")["count"].transform("sum")
        of_set = f", test set: {test_set}" if len(sets) > 1 else ""
        title = f"{entry.name}{of_set}"
        cells = pd.DataFrame(
            {
                "true class": counts["true"],
                "predicted class": counts["predicted"],
                "samples": [f"{count:,}" for count in counts["count"]],
                "share of the true class": [f"{100 * share:.3g} %" for share in counts["share"]],
            }
        )
        sheet = Sheet(f"{title}: samples by true and predicted class", cells, names=2)
        caption = "Share of the true class, from 0 (white) to 1 (dark)."
        key = f"confusion-{sets.index(str(test_set)) + 1}-{lines.of_run().index(entry) + 1}{place}"
        yield Picture(key, title, caption, sheet, _heat_map(counts))


def _heat_map(counts: pd.DataFrame) -> Spec:
    rows = list(_cells(counts))
    shades = alt.Scale(domain=[0, 0.3, 0.7, 1], range=["#ffffff", "#9cc7e4", COLOURS[0], "#003a5c"], interpolate="rgb")
    axis = alt.Axis(title="predicted class", labelAngle=-90, labelLimit=90, ticks=False, orient="top")
    across = alt.X("column:N", sort=alt.EncodingSortField(field="across", op="min"), axis=axis)
    axis = alt.Axis(title="true class", labelLimit=110, ticks=False)
    base = layer_of("cells").encode(
        x=across, y=alt.Y("row:N", sort=alt.EncodingSortField(field="down", op="min"), axis=axis)
    )
    heat = base.mark_rect(stroke="#e4e7ea", strokeWidth=0.4).encode(
        color=alt.Color("share:Q", scale=shades, legend=None),
        tooltip=[
            alt.Tooltip("row:N", title="true class"),
            alt.Tooltip("column:N", title="taken for"),
            alt.Tooltip("count:Q", title="samples", format=",d"),
            alt.Tooltip("text:N", title="share"),
        ],
    )
    names = {row["row"] for row in rows}
    height = min(560, max(150, 26 * len(names)))
    if len(names) > _NUMBERED:
        return specification(heat, tables={"cells": rows}, height=height)
    text = base.transform_filter("datum.count > 0").mark_text(fontSize=11)
    text = text.encode(
        text=alt.Text("share:Q", format=".2f"),
        color=alt.condition("datum.share > 0.45", alt.value("white"), alt.value(DARK)),
    )
    return specification(heat, text, tables={"cells": rows}, height=height)


def _cells(counts: pd.DataFrame) -> Iterator[Row]:
    """What was counted, and the whole diagonal, so that each class is on both axes."""
    named = [counts[[f"{which}_index", which]].set_axis(["number", "name"], axis=1) for which in ("true", "predicted")]
    classes = pd.concat(named).drop_duplicates("number").sort_values("number")
    names = dict(zip(classes["number"], unlike(classes["name"].astype(str)), strict=True))
    found = {
        (true, predicted): (count, share)
        for true, predicted, count, share in zip(
            counts["true_index"], counts["predicted_index"], counts["count"], counts["share"], strict=True
        )
    }
    tested = {true for true, _ in found}
    for down, across in dict.fromkeys([*((number, number) for number in names), *found]):
        count, share = found.get((down, across), (0, 0.0))
        yield {
            **{"down": down, "across": across, "row": names[down], "column": names[across]},
            **{"count": count, "share": share, "text": f"{share:.1%}" if down in tested else "no samples"},
        }
