"""What each protocol has reached and cost in the end: the comparison as a table, and bars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from fedsim.experiment.compare import compare
from fedsim.experiment.compare_device_classes import compare_device_classes
from fedsim.experiment.planned_costs import planned_costs
from fedsim.experiment.results import Results
from fedsim.metrics.intervals import half_width
from fedsim.report.bars import Bar, bar_chart
from fedsim.report.lines import Lines
from fedsim.report.parts import Picture, Section, Sheet
from fedsim.viz.figures import score_of
from fedsim.viz.human import number, scale, with_half_width
from fedsim.viz.series import runs_of
from fedsim.viz.tables import COSTS, DEVICE_CLASSES, comparison_cells, cost_cells, further_tables

__all__ = ["comparison", "costs"]

_WHOSE = ("run", "protocol", "device class", "class", "true class", "class of samples")


def comparison(results: Sequence[Results]) -> Section:
    """The tables that ``fedsim compare`` prints."""
    compared = compare(results)
    of_classes, planned = compare_device_classes(results), planned_costs(results)
    interval = "Means over seeds, ± half of the 95 % interval (Student's t). " if (compared["n"] > 1).any() else ""
    words = f"{interval}A formula stands beside the simulation it is compared with. 1 MB is 1,000,000 bytes."
    sheets = [_sheet("Protocols", comparison_cells(compared))]
    if len(of_classes):
        cells = comparison_cells(of_classes).drop(columns="rounds")
        sheets.append(_sheet(DEVICE_CLASSES, cells))
    if len(planned):
        sheets.append(_sheet(COSTS, cost_cells(planned)))
    sheets += [_sheet(title, cells) for title, cells in further_tables(compared)]
    if not (compared["accounting"] == "formula").any():
        words = f"{interval}1 MB is 1,000,000 bytes."
    return Section("comparison", "Comparison", words, sheets=sheets)


def _sheet(title: str, cells: pd.DataFrame) -> Sheet:
    names = [place for place, column in enumerate(cells) if column in _WHOSE]
    return Sheet(title, cells, names=max(names) + 1)


def costs(summary: pd.DataFrame, rounds: pd.DataFrame, lines: Lines) -> Section:
    """Bars of what was reached, of simulated time and of traffic; *summary* and *rounds* are of all runs."""
    pictures = []
    if rounds["loss"].notna().any():
        score = score_of(summary, "final_accuracy")
        most = 1.0 if score.column == "final_accuracy" else math.inf
        parts = [(score.label, score.column)]
        pictures.append(_bars("score", f"{score.title} at the end", score.label, summary, lines, parts, None, most))
    time = [("simulated time", "sim_time_s")]
    pictures.append(_bars("time", "Simulated time", "simulated time", summary, lines, time, "seconds"))
    ways = [("uplink", "uplink_bytes"), ("downlink", "downlink_bytes")]
    pictures.append(_bars("traffic", "Traffic of the clients", "sent and received", summary, lines, ways, "bytes"))
    if summary["energy_j"].notna().any():
        pictures.append(_bars("energy", "Energy", "energy", summary, lines, [("energy", "energy_j")], "joules"))
    whiskers = " A whisker is the 95 % interval of the mean over seeds." if rounds["seed"].nunique() > 1 else ""
    return Section("costs", "Results and costs", f"Of whole runs.{whiskers}", pictures=pictures)


def _bars(
    key: str,
    title: str,
    label: str,
    summary: pd.DataFrame,
    lines: Lines,
    parts: Sequence[tuple[str, str]],
    quantity: str | None,
    most: float = math.inf,
) -> Picture:
    columns = [column for _, column in parts]
    unit, name = scale(quantity, summary[columns].sum(axis=1).max()) if quantity else (1.0, "")
    shown = f"{label}, {name}" if name else label
    bars, rows = list[Bar](), list[dict[str, str]]()
    for whose, colour, pale, seeds in _by_bar(summary, lines):
        known = seeds[columns].sum(axis=1, skipna=False).dropna()
        means = [float(seeds[column].mean()) / unit for column in columns]
        half = half_width(known.to_list()) / unit
        some = "" if len(known) == len(seeds) else f" ({len(known)} of {len(seeds)} seeds)"
        own, own_name = scale(quantity, unit * sum(means)) if quantity else (1.0, "")
        mean = with_half_width(unit * sum(means) / own, unit * half / own)
        value = "none" if known.empty else f"{mean} {own_name}".rstrip() + some
        each = [(what, length) for (what, _), length in zip(parts, means, strict=True)]
        bars.append(Bar(whose, colour, value, each, half, pale))
        lengths = {f"{what}, {name}": "" if math.isnan(length) else number(length) for what, length in each}
        rows.append({"protocol": whose, **(lengths if len(parts) > 1 else {}), label: value, "seeds": str(len(seeds))})
    sheet = Sheet(f"{title}: means over seeds, ± half of the 95 % interval", pd.DataFrame(rows))
    dark = f"; {parts[0][0]} is dark, {parts[1][0]} light" if len(parts) > 1 else ""
    caption = f"{shown[0].upper()}{shown[1:]}{dark}. The value stands below each name."
    return Picture(f"{key}-by-protocol", title, caption, sheet, bar_chart(bars, shown, most=most))


def _by_bar(summary: pd.DataFrame, lines: Lines) -> Iterator[tuple[str, str, bool, pd.DataFrame]]:
    """For each run, protocol and accounting: its name, its colour, whether it is a formula, and a row for each seed."""
    for (run, protocol), rows in summary.groupby([runs_of(summary), "protocol"], sort=False):
        entry = lines.entry(str(run), str(protocol))
        for accounting, seeds in rows.groupby("accounting", sort=False):
            formula = accounting == "formula"
            yield f"{entry.name} (formula)" if formula else entry.name, entry.colour, formula, seeds
