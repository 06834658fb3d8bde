"""Tables of numbers become tables of text: what stands in a cell, whatever then draws the lines around it.

And tables of facts that fit a terminal of 100 columns: rows of names and texts, or of names and spreads.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import pandas as pd

from fedsim.metrics.chosen import chosen_column
from fedsim.scenario.scalars import printable
from fedsim.units import si
from fedsim.viz.cells import Column, cell, column_cells, in_units, is_told
from fedsim.viz.chosen_tables import errors_in_a_unit, recall_tables, titles_by_test_set, told_in_a_unit
from fedsim.viz.human import number

__all__ = [
    "COSTS",
    "DEVICE_CLASSES",
    "WIDTH",
    "DescriptionTable",
    "Show",
    "comparison_cells",
    "cost_cells",
    "count",
    "further_tables",
    "many",
    "number_cells",
    "pairs",
    "rate",
    "spreads",
]

DEVICE_CLASSES = "By device class: own models, and bytes of one device"
"""The title of `comparison_cells` of device classes."""
COSTS = "What a round takes, by device class: means of one device over the run, and the busiest cell"
"""The title of `cost_cells`."""
WIDTH = 100
FRAME = 7  # "| ", " | " and " |" of a table of two columns
Show = Callable[[float], str]


class DescriptionTable(NamedTuple):
    """One table, and which of its columns are flush left."""

    cells: pd.DataFrame
    left: tuple[str, ...]


def pairs(title: str, value: str, rows: Iterable[tuple[str, str]]) -> DescriptionTable:
    """Two columns; what is too long for the second is folded."""
    listed = list(rows)
    room = WIDTH - FRAME - max(len(name) for name, _ in [(title, ""), *listed])
    folded: list[tuple[str, str]] = []
    for name, text in listed:
        for position, line in enumerate(textwrap.wrap(printable(text), room) or [""]):
            folded.append(("" if position else name, line))
    heading = textwrap.shorten(printable(value), room, placeholder=" ...")
    return DescriptionTable(pd.DataFrame(folded, columns=[title, heading]), (title, heading))


def spreads(title: str, rows: Iterable[tuple[str, dict[str, float] | None, Show]]) -> DescriptionTable:
    """A row for each spread that is known."""
    cells = [
        {title: name, **{which: show(spread[which]) for which in ("min", "median", "mean", "max")}}
        for name, spread, show in rows
        if spread is not None
    ]
    return DescriptionTable(pd.DataFrame(cells), (title,))


def count(value: float) -> str:
    """A number of things, or the mean of such."""
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"


def rate(value: float) -> str:
    """Bits per second."""
    return "unlimited" if math.isinf(value) else si(value, "bit/s")


def many(count: int, noun: str) -> str:
    """So many of them: ``1 cell``, ``2 cells``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_COLUMNS = (
    Column("final_accuracy", "accuracy"),
    Column("loss", "loss"),
    Column("rmse", "RMSE"),
    Column("final_accuracy_global", "accuracy, global"),
    Column("rmse_global", "RMSE, global"),
    Column("final_accuracy_clients", "accuracy, clients"),
    Column("rmse_clients", "RMSE, clients"),
    Column("final_accuracy_unseen", "accuracy, unseen"),
    Column("rmse_unseen", "RMSE, unseen"),
    Column("sim_time_s", "simulated time", "seconds"),
    Column("uplink_bytes", "uplink", "bytes"),
    Column("downlink_bytes", "downlink", "bytes"),
    Column("transfer_bytes", "traffic", "bytes", asked=True),
    Column("backbone_bytes", "on the backbone", "bytes", asked=True),
    Column("network_bytes", "on all links", "bytes", asked=True),
    Column("energy_j", "energy", "joules"),
    Column("rounds", "rounds"),
    Column("rounds_to_target", "rounds to target", asked=True),
    Column("time_to_target_s", "time to target", "seconds"),
    Column("bytes_to_target", "bytes to target", "bytes"),
)


_FURTHER_TABLES = {
    "Filters that clients have chosen last, and their models without the others: means over clients": (
        Column("filters_share", "filters"),
        Column("flops_share", "FLOPs"),
        Column("present_share", "with shortcuts"),
        Column("target_met", "target met"),
        Column("kept_accuracy", "accuracy"),
        Column("kept_inference_s", "inference", "seconds"),
        Column("inference_s", "of whole models", "seconds"),
    ),
    "Newcomers, after the last round": (
        Column("newcomers", "newcomers"),
        Column("newcomers_accuracy", "accuracy"),
        Column("newcomers_rmse", "RMSE"),
        Column("newcomers_s", "simulated time", "seconds"),
        Column("newcomers_bytes", "downlink", "bytes"),
    ),
}
"""Columns that only some protocols have: a table of their own for each title."""


_FRONTS = {"front_time": "time", "front_bytes": "bytes"}


def comparison_cells(
    comparison: pd.DataFrame, further: Collection[str] = (), *, front: bool = False, units_in_head: bool = False
) -> pd.DataFrame:
    """What `fedsim.compare` returned, as text: a column for each metric that any row has, and some *further* ones.

    What `fedsim.compare_device_classes` returned has one column more, for the device class.

    With several seeds a cell is a mean and the half width of its 95 % interval, or one number where they all agree. The
    number of seeds has a column of its own then, and stands in a cell that has fewer: ``0.93 (2 of 3)``. Where not all
    seeds reached a target the cell is a median or a bound: ``median 3.2 h (2 of 3)``, ``> 5.2 h (1 of 3)``.

    *front* adds a column that says on which Pareto fronts a row is: of accuracy against time, bytes or both.
    *units_in_head* has one unit for a column, and it is in its title, with the target where all rows have the same.
    """
    columns = [column for column in _with_errors(comparison, _COLUMNS) if not column.asked or column.metric in further]
    cells = _cells_of(comparison, columns, among=comparison, units_in_head=units_in_head)
    if front:
        names = ([_FRONTS[one] for one in _FRONTS if row[one]] for _, row in comparison.iterrows())
        cells["front"] = [", ".join(name) for name in names]
    if units_in_head and comparison["target_accuracy"].nunique() == 1:
        target = f" {comparison['target_accuracy'].max():g}"
        cells = cells.rename(columns=lambda title: str(title).replace(" to target", f" to target{target}"))
    return cells


def _with_errors(comparison: pd.DataFrame, columns: Iterable[Column]) -> Iterator[Column]:
    """The *columns*, with errors in a unit before costs; where one is told so, it is left out as a bare number."""
    newcomers, told = "newcomers_", told_in_a_unit(comparison)
    errors = [Column(*one) for one in errors_in_a_unit(comparison).items()]
    for column in columns:
        if column.metric in ("sim_time_s", "newcomers_s"):
            of_newcomers = column.metric.startswith(newcomers)
            yield from (error for error in errors if error.metric.startswith(newcomers) == of_newcomers)
        if column.metric not in told:
            yield column


def further_tables(comparison: pd.DataFrame, *, units_in_head: bool = False) -> Iterator[tuple[str, pd.DataFrame]]:
    """Titles and cells, as of `comparison_cells`, of what only some protocols have; none where nobody has any of it.

    And what was chosen: metrics of each test set, and recall by class.
    """
    events = comparison[comparison["accounting"] == "event"]
    for title, columns in _FURTHER_TABLES.items():
        known = [f"{column.metric}_n" for column in columns]
        rows = events[(events[known] > 0).any(axis="columns")]
        if len(rows):
            shown = _with_errors(comparison, columns)
            yield title, _cells_of(rows, shown, among=comparison, units_in_head=units_in_head)
    for title, metrics in titles_by_test_set(comparison).items():
        known = [f"{metric}_n" for metric in metrics if chosen_column(metric)]
        rows = events[(events[known] > 0).any(axis="columns")]
        if len(rows):
            yield title, _cells_of(rows, [Column(*one) for one in metrics.items()], among=comparison)
    yield from recall_tables(comparison, lambda row, metric: cell(row, Column(metric, "")))


def _cells_of(
    comparison: pd.DataFrame, columns: Iterable[Column], *, among: pd.DataFrame, units_in_head: bool = False
) -> pd.DataFrame:
    """Whose they are, as far as that tells the rows of *among* apart, and each of the *columns* that any row has."""
    cells = pd.DataFrame(index=comparison.index)
    if among["run"].nunique() > 1:
        cells["run"] = comparison["run"]
    formula = comparison["accounting"] == "formula"
    cells["protocol"] = comparison["protocol"] + formula.map({True: " (formula)", False: ""})
    if "device_class" in comparison:
        cells["device class"] = comparison["device_class"]
    if (among["n"] > 1).any():
        cells["seeds"] = comparison["n"].astype(str)
    for column in columns:
        if is_told(comparison, column):
            title, texts = column_cells(comparison, column, units_in_head=units_in_head)
            cells[title] = texts
    return cells


def cost_cells(costs: pd.DataFrame, *, units_in_head: bool = False) -> pd.DataFrame:
    """What `fedsim.experiment.planned_costs` returned, as text."""
    cells = costs[["protocol", "device_class"]].rename(columns={"device_class": "device class"})
    if costs["run"].nunique() > 1:
        cells.insert(0, "run", costs["run"])
    cells["devices"] = [f"{devices:,}" for devices in costs["devices"]]
    for title, column, quantity in (
        ("round", "round_s", "seconds"),
        ("down", "down_s", "seconds"),
        ("work", "work_s", "seconds"),
        ("up", "up_s", "seconds"),
        ("both ways", "message_bytes", "bytes"),
    ):
        head, texts = in_units(title, costs[column], quantity, units_in_head=units_in_head)
        cells[head] = texts
    for title, column in (("busiest up", "busy_up"), ("busiest down", "busy_down")):
        head, sign = (f"{title} (%)", "") if units_in_head else (title, " %")
        cells[head] = ["" if math.isnan(value) else f"{100 * value:.3g}{sign}" for value in costs[column]]
    return cells


def number_cells(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose numbers become text with five digits and one decimal at least; missing ones are blank.

    >>> number_cells(pd.DataFrame({"published": [2.629, 1262, 36898.1], "ours": [2.6291948, 1261.9, math.nan]}))
      published     ours
    0     2.629   2.6292
    1     1,262  1,261.9
    2  36,898.1
    """
    cells = table.astype(object)
    for column in table.select_dtypes("number"):
        shown = _as_printed if column in ("published", "worked out") else _precise
        cells[column] = ["" if math.isnan(value) else shown(float(value)) for value in table[column]]
    return cells


def _as_printed(value: float) -> str:
    return f"{value:,.0f}" if value.is_integer() else f"{value:,}"


def _precise(value: float) -> str:
    decimals = max(1, len(number(value, digits=5).partition(".")[2]))
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.{decimals}f}"
