"""The table of a sweep, as text: its values of the varied keys, then how the protocols compare."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fedsim.scenario.scalars import printable
from fedsim.viz.tables import comparison_cells

__all__ = ["sweep_cells", "without_what_is_the_same"]


def sweep_cells(
    compared: pd.DataFrame,
    keys: Sequence[str],
    further: Sequence[str] = (),
    *,
    front: bool = False,
    units_in_head: bool = False,
) -> pd.DataFrame:
    """The cells of `comparison_cells`, with a column for each of the *keys* before them and none for the run."""
    cells = comparison_cells(compared, further, front=front, units_in_head=units_in_head)
    cells = cells.drop(columns="run", errors="ignore")
    for position, key in enumerate(keys):
        cells.insert(position, key, [printable(str(value)) for value in compared[key]])
    return cells


def without_what_is_the_same(cells: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The columns in which several rows differ, and in words those in which they do not.

    >>> cells, same = without_what_is_the_same(pd.DataFrame({"mu": ["0.1", "1"], "seeds": ["3", "3"]}))
    >>> list(cells), same
    (['mu'], 'In all rows: seeds 3')
    """
    same = [title for title in cells if len(cells) > 1 and cells[title].nunique() == 1]
    said = "; ".join(f"{title} {cells[title].iloc[0]}" for title in same)
    return cells.drop(columns=same), f"In all rows: {said}" if said else ""
