"""How the metrics that scenarios have chosen stand in tables.

Errors in a unit are among the other columns. The rest is apart, as a terminal is not wide enough: for each test set a
table of metrics and one of recall by class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pandas as pd

from fedsim.metrics.chosen import ChosenColumn, chosen_column

__all__ = ["errors_in_a_unit", "recall_tables", "titles_by_test_set", "told_in_a_unit"]

_TITLES = {"macro_f1": "macro F1", "false_alarms": "false alarms", "missed_faults": "missed faults", "phm08": "PHM08"}
_END = "_half_width"


def errors_in_a_unit(comparison: pd.DataFrame) -> dict[str, str]:
    """Those that there are, and what they are called."""
    return {name: _on(f"RMSE, {column.unit}", column.test_set) for name, column in _chosen(comparison) if column.unit}


def titles_by_test_set(comparison: pd.DataFrame) -> dict[str, dict[str, str]]:
    """The titles of tables, each with metrics and what they are called: the accuracy, and beside it what was chosen."""
    found: dict[str, dict[str, str]] = {}
    for name, column in _chosen(comparison):
        if column.metric in _TITLES:
            ending = f"_{column.test_set}" if column.test_set else ""
            accuracy = f"final_accuracy{ending}"
            first = {accuracy: "accuracy"} if f"{accuracy}_n" in comparison else {}
            found.setdefault(_on("Chosen metrics", column.test_set), first)[name] = _TITLES[column.metric]
    return found


def told_in_a_unit(comparison: pd.DataFrame) -> set[str]:
    """The errors in the scale of the data that every row which has them has in a unit too."""
    found = set()
    for name, column in _chosen(comparison):
        bare = f"{column.without_unit}_n"
        if column.unit and bare in comparison and not ((comparison[bare] > 0) & (comparison[f"{name}_n"] == 0)).any():
            found.add(column.without_unit)
    return found


def _chosen(comparison: pd.DataFrame) -> Iterator[tuple[str, ChosenColumn]]:
    metrics = [name.removesuffix(_END) for name in map(str, comparison) if name.endswith(_END)]
    return ((name, column) for name in metrics if (column := chosen_column(name)))


def _on(title: str, test_set: str) -> str:
    return f"{title}, {test_set}" if test_set else title


def recall_tables(
    comparison: pd.DataFrame, cell: Callable[[pd.Series, str], str]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Titles and cells: for each test set, a row for each run and class, and a column for each protocol.

    *comparison* is a table of `fedsim.compare`, of which the simulated runs count; *cell* makes the text of one of its
    rows and a metric.
    """
    events = comparison[comparison["accounting"] == "event"]
    protocols = list(dict.fromkeys(events["protocol"]))
    first = next(name for name in ("class", "true class", "class of samples") if name not in protocols)
    found = [(name, column) for name, column in _chosen(events) if column.class_name]
    for test_set in dict.fromkeys(column.test_set for _, column in found):
        rows = []
        for run, of_run in events.groupby("run", sort=False):
            by_protocol = {str(row["protocol"]): row for _, row in of_run.iterrows()}
            for name, column in found:
                known = not of_run[f"{name}_mean"].map(math.isnan).all()
                if column.test_set == test_set and known:
                    cells = [cell(by_protocol[one], name) if one in by_protocol else "" for one in protocols]
                    rows.append([run, column.class_name, *cells])
        if rows:
            titles = ["protocol run" if one == "run" else one for one in protocols]
            table = pd.DataFrame(rows, columns=["run", first, *titles])
            yield _on("Recall by class", test_set), table if events["run"].nunique() > 1 else table.drop(columns="run")
