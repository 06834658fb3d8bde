"""The table of a search, as text: who reached the target, what that cost, and who was left on the way."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from fedsim.scenario.scalars import printable
from fedsim.viz.cells import Column, column_cells, is_told

__all__ = ["COST_COLUMNS", "advice_cells"]

COST_COLUMNS = {
    "sim_time_s": Column("time_to_target_s", "time to target", "seconds"),
    "transfer_bytes": Column("bytes_to_target", "bytes to target", "bytes"),
    "round": Column("rounds_to_target", "rounds to target"),
}
"""What the target took of each budget at which a run can be stopped."""


def advice_cells(
    table: pd.DataFrame, keys: Sequence[str], budgets: Collection[str], *, units_in_head: bool = False
) -> pd.DataFrame:
    """What `fedsim.advise` found, its ``table``, with a column for each of the *keys*, and for the cost of each budget.

    A cell is a mean and the half width of its 95 % interval, or as in `fedsim.viz.tables.comparison_cells`.
    """
    cells = pd.DataFrame(index=table.index)
    for key in keys:
        cells[f"{key} (varied)" if key in ("protocol", "reached") else key] = [
            printable(str(value)) for value in table[key]
        ]
    cells["protocol"] = table["protocol"]
    cells["reached"] = [
        f"{reached} of {seeds}" if seeds else "" for reached, seeds in zip(table["reached"], table["n"], strict=True)
    ]
    costs = [column for budget, column in COST_COLUMNS.items() if budget in budgets]
    for column in (Column("best_accuracy", "best accuracy"), *costs):
        if is_told(table, column):
            title, texts = column_cells(table, column, units_in_head=units_in_head)
            cells[title] = texts
    if table["front"].sum() > 1:
        cells["front"] = ["yes" if on_it else "" for on_it in table["front"]]
    if table["left"].any():
        cells["left out"] = [printable(left) for left in table["left"]]
    return cells
