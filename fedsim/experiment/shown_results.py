"""Results as people look at them: the comparison of a run's protocols, and its remarks, as text and as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path

import pandas as pd

from fedsim.experiment.means_over_seeds import means_over_seeds
from fedsim.scenario.scalars import printable
from fedsim.viz.sweep_cells import sweep_cells, without_what_is_the_same
from fedsim.viz.tables import WIDTH, comparison_cells, further_tables, many

__all__ = ["as_html", "as_text", "sweep_as_html"]

_MOST_ROWS = 200
"""Of a sweep; of more, those in the middle are left out."""


def as_text(name: str, folder: Path, summary: pd.DataFrame, remarks: Sequence[str]) -> str:
    """Lines of at most 100 columns, unless a protocol's name is very long: what is wider goes on below."""
    means = pd.DataFrame(means_over_seeds([(name, summary)]))
    lines = [f"{name}, in {_short(folder)}", _as_lines(comparison_cells(means))]
    for title, cells in further_tables(means):
        lines += [title, _as_lines(cells)]
    for remark in remarks:
        lines += textwrap.wrap(f"Remark: {remark}", WIDTH, subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in "\n".join(lines).split("\n"))


def as_html(name: str, folder: Path, summary: pd.DataFrame, remarks: Sequence[str]) -> str:
    """A heading, a table and the remarks, without any style of their own."""
    heading = _heading(name, "", folder)
    means = pd.DataFrame(means_over_seeds([(name, summary)]))
    table = comparison_cells(means).to_html(index=False, border=0)
    for title, cells in further_tables(means):
        table += f"<div>{escape(title)}</div>{cells.to_html(index=False, border=0)}"
    return heading + table + _remarks(remarks)


def sweep_as_html(
    name: str, folder: Path, points: int, compared: pd.DataFrame, keys: Sequence[str], remarks: Sequence[str]
) -> str:
    """The same of a sweep, with a row for each point and protocol."""
    cells, same = without_what_is_the_same(sweep_cells(compared, keys))
    table = cells.to_html(index=False, border=0, max_rows=_MOST_ROWS)
    said = f"<div>{escape(same)}</div>" if same else ""
    return _heading(name, f", a sweep of {many(points, 'point')}", folder) + said + table + _remarks(remarks)


def _heading(name: str, what: str, folder: Path) -> str:
    return f"<div><strong>{escape(name)}</strong>{what}, in <code>{escape(_short(folder))}</code></div>"


def _remarks(remarks: Sequence[str]) -> str:
    return "".join(f"<div>Remark: {escape(remark)}</div>" for remark in remarks)


def _as_lines(cells: pd.DataFrame) -> str:
    return cells.set_index(cells.columns[0]).rename_axis(None).to_string(line_width=WIDTH)


def _short(folder: Path) -> str:
    """The end of a long way: a notebook that is passed on need not tell what its author's folders are called.

    >>> _short(Path("runs/quickstart")), _short(Path("/data/plant/studies/runs/quickstart"))
    ('runs/quickstart', '.../runs/quickstart')
    """
    is_long = folder.is_absolute() and len(folder.parts) > 3
    return printable(str(Path("...", *folder.parts[-2:]) if is_long else folder))
