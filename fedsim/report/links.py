"""How busy the network of one run was: its busiest channels, and the network as a drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import altair as alt
import pandas as pd

from fedsim.errors import UserError
from fedsim.experiment.results import Results
from fedsim.report.charts import NAMES, Row, Spec, colours, layer_of, not_hidden, specification
from fedsim.report.drawing import drawing_of
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet, apart
from fedsim.viz.human import number, scale, size

__all__ = ["network"]

_Channel: TypeAlias = tuple[str, str]
"""A link and a direction."""
_BUSIEST = 8
"""Channels in a chart."""
_LISTED = 100
"""Rows of the table behind the drawing."""
_LETTERS = 25
"""Of a link beside its bars."""


def network(results: Results, run: str, lines: Lines, place: str, *, drawn: bool = True) -> Section:
    """The section of one run; *place* tells its keys from those of other runs. Whether the network is *drawn*."""
    links = results.links
    means = links.groupby(["link", "direction", "protocol"], sort=False)[["utilisation", "bytes"]].mean().reset_index()
    means["channel"] = list(zip(means["link"], means["direction"], strict=True))
    pictures, missing = [], []
    if means["utilisation"].notna().any():
        utilised = means.assign(value=100 * means["utilisation"])
        pictures.append(
            _busiest(utilised, "utilisation", "Utilisation of the busiest channels", "%", run, lines, place)
        )
    unit, name = scale("bytes", means["bytes"].max())
    carried = means.assign(value=means["bytes"] / unit)
    pictures.append(_busiest(carried, "bytes", "Bytes on the busiest channels", name, run, lines, place))
    try:
        if drawn:
            pictures.append(_drawing(results, means, place))
    except UserError as error:  # the tables are enough for all else
        missing.append(f"The network is not drawn: {error}.")
    words = (
        "A channel is one direction of a wire, or of the air of a cell. Its utilisation is the part of the run in "
        "which it was used; close to 100 % it is what a round waits for."
    )
    return Section(f"network{place}", "Network", words, pictures=pictures, missing=missing)


def _busiest(means: pd.DataFrame, quantity: str, title: str, unit: str, run: str, lines: Lines, place: str) -> Picture:
    """Those channels where any protocol has the largest values."""
    known = means.dropna(subset=["value"])
    largest = known.groupby("channel", sort=False)["value"].max()
    chosen = largest.sort_values(ascending=False, kind="stable").index[:_BUSIEST].tolist()
    protocols = list(dict.fromkeys(known["protocol"]))
    entries = [replace(lines.entry(run, protocol), dashes=()) for protocol in protocols]
    values: dict[tuple[_Channel, str], float] = {
        (channel, protocol): value
        for channel, protocol, value in zip(known["channel"], known["protocol"], known["value"], strict=True)
    }
    label = f"{quantity if quantity == 'utilisation' else 'bytes in the whole run'}, {unit}"
    columns = {"link": [link for link, _ in chosen], "direction": [direction for _, direction in chosen]} | {
        entry.name: [number(values[channel, name]) if (channel, name) in values else "" for channel in chosen]
        for entry, name in zip(entries, protocols, strict=True)
    }
    of_all = f"the {len(chosen)} busiest of {len(largest)}" if len(largest) > len(chosen) else f"all {len(chosen)}"
    caption = f"{label[0].upper()}{label[1:]}; mean over seeds, of {of_all} channels."
    spec = _chart(chosen, values, dict(zip(protocols, entries, strict=True)), label)
    sheet = Sheet(f"{title}: {label}, mean over seeds", pd.DataFrame(columns), names=2)
    return Picture(f"channels-{quantity}{place}", title, caption, sheet, spec, legend=entries)


def _chart(
    channels: Sequence[_Channel], values: dict[tuple[_Channel, str], float], entries: dict[str, Entry], label: str
) -> Spec:
    shown = apart([link for link, _ in channels], _LETTERS)
    rows: list[Row] = [
        {
            "place": place,
            "label": f"{shown[channel[0]]}\n{channel[1]}",
            "channel": ", ".join(channel),
            "line": entry.line,
            "name": entry.name,
            "value": values[channel, protocol],
        }
        for place, channel in enumerate(channels)
        for protocol, entry in entries.items()
        if (channel, protocol) in values
    ]
    every = list(entries.values())
    order = alt.EncodingSortField(field="place", op="min", order="ascending")
    chart = (
        not_hidden(layer_of("channels"))
        .mark_bar()
        .encode(
            x=alt.X("value:Q", axis=alt.Axis(title=label, tickCount=5)),
            y=alt.Y("label:N", sort=order, axis=NAMES),
            yOffset=alt.YOffset("line:N", sort="ascending"),
            color=alt.Color("line:N", scale=colours(every), legend=None),
            tooltip=[
                alt.Tooltip("channel:N", title="channel"),
                alt.Tooltip("name:N", title="protocol"),
                alt.Tooltip("value:Q", title=label, format=".4~g"),
            ],
        )
    )
    height = max(180, len(channels) * max(34, 9 * len(every) + 8))
    return specification(chart, tables={"channels": rows}, height=height, lines=True)


def _drawing(results: Results, means: pd.DataFrame, place: str) -> Picture:
    drawing = drawing_of(results, f"map{place}")
    busiest = means.assign(most=means.groupby("channel")["bytes"].transform("max"))
    busiest = busiest.sort_values("most", ascending=False, kind="stable").head(_LISTED)
    cells = pd.DataFrame(
        {
            "link": busiest["link"],
            "direction": busiest["direction"],
            "protocol": busiest["protocol"],
            "utilisation, %": ["" if math.isnan(value) else number(100 * value) for value in busiest["utilisation"]],
            "bytes": [size(value) for value in busiest["bytes"]],
        }
    )
    some = f", the {_LISTED} rows with most bytes; links.csv has all" if len(means) > _LISTED else ""
    sheet = Sheet(f"Channels of the network: means over seeds{some}", cells, names=3)
    caption = "The darker, the busier; what the marks and colours mean stands in the drawing."
    return Picture(f"map{place}", "The network and its load", caption, sheet, drawing=drawing)
