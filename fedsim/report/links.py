"""How busy the network of one run was: its busiest channels, and the network as a drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from fedsim.errors import UserError
from fedsim.experiment.results import Results
from fedsim.report.charts import NAMES, Row, colours, data, specification
from fedsim.report.drawing import drawing_of
from fedsim.report.lines import Lines
from fedsim.report.parts import Entry, Picture, Section, Sheet, apart
from fedsim.viz.human import number, scale, size

__all__ = ["network"]

_BUSIEST = 8
"""Channels in a chart."""
_LISTED = 100
"""Rows of the table behind the drawing."""
_LETTERS = 26


def network(results: Results, run: str, lines: Lines, place: str) -> Section:
    """The section of one run; *place* tells its keys from those of other runs."""
    links = results.links
    means = links.groupby(["link", "direction", "protocol"], sort=False)[["utilisation", "bytes"]].mean().reset_index()
    means["channel"] = means["link"] + ", " + means["direction"]
    pictures, missing = [], []
    if means["utilisation"].notna().any():
        utilised = means.assign(value=100 * means["utilisation"])
        pictures.append(_busiest(utilised, "utilisation", "Utilisation of the busiest channels", "%", run, lines, place))
    unit, name = scale("bytes", means["bytes"].max())
    carried = means.assign(value=means["bytes"] / unit)
    pictures.append(_busiest(carried, "bytes", "Bytes on the busiest channels", name, run, lines, place))
    try:
        pictures.append(_drawn(results, means, place))
    except UserError as error:  # the tables are enough for all else
        missing.append(f"The network is not drawn: {error}.")
    words = (
        "A channel is one direction of a wire, or of the air of a cell. Its utilisation is the part of the run in which "
        "it was used; close to 100 % it is what a round waits for."
    )
    return Section(f"network{place}", "Network", words, pictures=pictures, missing=missing)


def _busiest(
    means: pd.DataFrame, quantity: str, title: str, unit: str, run: str, lines: Lines, place: str
) -> Picture:
    """Those channels where any protocol has the largest values."""
    known = means.dropna(subset=["value"])
    largest = known.groupby("channel", sort=False)["value"].max()
    chosen = largest.sort_values(ascending=False, kind="stable").index[:_BUSIEST].tolist()
    protocols = list(dict.fromkeys(known["protocol"]))
    entries = [lines.entry(run, protocol) for protocol in protocols]
    values = known.set_index(["channel", "protocol"])["value"].to_dict()
    label = f"{quantity if quantity == 'utilisation' else 'bytes in the whole run'}, {unit}"
    columns = {"channel": chosen} | {
        entry.name: ["" if math.isnan(value := values.get((channel, name), math.nan)) else number(value) for channel in chosen]
        for entry, name in zip(entries, protocols, strict=True)
    }
    of_all = f"the {len(chosen)} busiest of {len(largest)}" if len(largest) > len(chosen) else f"all {len(chosen)}"
    caption = f"{label[0].upper()}{label[1:]}; mean over seeds, of {of_all} channels."
    spec = _chart(chosen, values, dict(zip(protocols, entries, strict=True)), label)
    sheet = Sheet(f"{title}: {label}, mean over seeds", pd.DataFrame(columns))
    return Picture(f"channels-{quantity}{place}", title, caption, sheet, spec, legend=entries)


def _chart(
    channels: Sequence[str], values: dict[tuple[str, str], float], entries: dict[str, Entry], label: str
) -> dict[str, Any]:
    shown = apart(channels, _LETTERS)
    rows: list[Row] = [
        {
            "place": place,
            "label": _on_two_lines(shown[channel]),
            "channel": channel,
            "line": entry.line,
            "name": entry.name,
            "value": values[channel, protocol],
        }
        for place, channel in enumerate(channels)
        for protocol, entry in entries.items()
        if (channel, protocol) in values
    ]
    every = list(entries.values())
    hidden = alt.param(name="hidden", value=[])
    order = alt.EncodingSortField(field="place", op="min", order="ascending")
    chart = (
        alt.Chart(data(rows))
        .transform_filter("indexof(hidden, datum.line) < 0")
        .mark_bar()
        .encode(
            x=alt.X("value:Q", axis=alt.Axis(title=label, tickCount=5)),
            y=alt.Y("label:N", sort=order, axis=NAMES),
            yOffset=alt.YOffset("line:N", sort=[entry.line for entry in every]),
            color=alt.Color("line:N", scale=colours(every), legend=None),
            tooltip=[
                alt.Tooltip("channel:N", title="channel"),
                alt.Tooltip("name:N", title="protocol"),
                alt.Tooltip("value:Q", title=label, format=".4~g"),
            ],
        )
        .add_params(hidden)
    )
    return specification(chart, height=max(180, len(channels) * max(26, 9 * len(every) + 8)))


def _on_two_lines(channel: str) -> str:
    """The direction on a line of its own, where a name says it."""
    for ending in (", uplink", ", downlink"):
        if channel.endswith(ending):
            return f"{channel.removesuffix(ending)}\n{ending.removeprefix(', ')}"
    return channel


def _drawn(results: Results, means: pd.DataFrame, place: str) -> Picture:
    drawing = drawing_of(results, f"map{place}")
    busiest = means.assign(most=means.groupby("channel")["bytes"].transform("max"))
    busiest = busiest.sort_values("most", ascending=False, kind="stable").head(_LISTED)
    cells = pd.DataFrame(
        {
            "channel": busiest["channel"],
            "protocol": busiest["protocol"],
            "utilisation, %": ["" if math.isnan(value) else number(100 * value) for value in busiest["utilisation"]],
            "bytes": [size(value) for value in busiest["bytes"]],
        }
    )
    some = f", the {_LISTED} rows with most bytes; links.csv has all" if len(means) > _LISTED else ""
    sheet = Sheet(f"Channels of the network: means over seeds{some}", cells, names=2)
    caption = "The darker, the busier; what the marks and colours mean stands in the drawing."
    return Picture(f"map{place}", "The network and its load", caption, sheet, drawing=drawing)
