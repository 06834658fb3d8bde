"""Tables of where the time went, as text."""

from __future__ import annotations

import math

import pandas as pd

from fedsim.metrics.critical_path import PARTS
from fedsim.scenario.scalars import printable
from fedsim.viz.human import duration, number

__all__ = ["TITLES", "link_cells", "part_cells", "straggler_cells"]

TITLES = {
    "queueing": "queueing",
    "airtime": "on the air",
    "backhaul": "on wires",
    "work": "training",
    "samples": "samples",
    "server": "server",
    "deadline": "deadline",
    "outage": "outage",
    "idle": "idle",
}
"""How people read the names of the parts."""


def part_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Of `fedsim.experiment.explain.parts_of_rounds`; parts that nobody has are left out, as is a single run."""
    cells = _names(table, "protocol")
    cells["round"] = [duration(seconds) for seconds in table["round_s"]]
    for part in PARTS:
        if (table[part] > 0).any():
            cells[TITLES[part]] = [percent(share) for share in table[part]]
    return cells


def straggler_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Of `fedsim.experiment.explain.worst_stragglers`."""
    cells = _names(table, "protocol", "client")
    cells["closed"] = [f"{closed} of {of}" for closed, of in zip(table["closed"], table["rounds"], strict=True)]
    cells["on the path"] = [percent(share) for share in table["critical"]]
    cells["lateness"] = ["" if math.isnan(late) else _signed(late) for late in table["lateness_s"]]
    return cells


def link_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Of `fedsim.experiment.explain.busiest_links`."""
    cells = _names(table, "protocol", "link", "direction")
    cells["utilisation"] = [percent(share) for share in table["utilisation"]]
    cells["peak"] = ["" if math.isnan(share) else percent(share) for share in table["peak"]]
    cells["mean queue"] = [number(length) for length in table["mean_queue"]]
    return cells


def percent(share: float) -> str:
    """A share for people; what is there and rounds to nothing is still seen.

    >>> percent(0.1234), percent(0.0), percent(0.00004), percent(1.0), percent(math.nan)
    ('12.3 %', '0', '< 0.1 %', '100.0 %', '')
    """
    if math.isnan(share):
        return ""
    if share == 0:
        return "0"
    return "< 0.1 %" if share < 0.0005 else f"{100 * share:.1f} %"


def _signed(seconds: float) -> str:
    return f"-{duration(-seconds)}" if seconds < 0 else f"+{duration(seconds)}" if seconds > 0 else "0 s"


def _names(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The columns of names, as they may be printed; that of runs where there are several."""
    several = table["run"].nunique() > 1
    return pd.DataFrame(
        {name: list(map(printable, table[name])) for name in ("run", *columns) if several or name != "run"}
    )
