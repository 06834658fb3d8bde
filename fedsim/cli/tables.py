"""Tables on the terminal, and as plain Markdown where the output is piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedsim import registry
from fedsim.experiment.compare import compare
from fedsim.viz.tables import comparison_cells, number_cells

if TYPE_CHECKING:
    import pandas as pd

    from fedsim.experiment.results import Results

__all__ = ["show_cells", "show_comparison", "show_paper_table"]

_PIPE_COLUMNS = 100_000  # a pipe has no width: nothing is cut or wrapped


def show_comparison(results: Sequence[Results]) -> None:
    """Print the protocols of *results* side by side."""
    show_cells(comparison_cells(compare(results)), left=("run", "protocol"))


def show_paper_table(name: str, results: Results) -> None:
    """Print a published table beside *results*."""
    table: pd.DataFrame = registry.load("paper_tables", name)(results)
    sys.stdout.write(f"\n{registry.first_sentence('paper_tables', name)}\n")
    if table.empty:
        sys.stdout.write("No protocol of this run is in it.\n")
    else:
        show_cells(number_cells(table), left=("system", "quantity", "unit"))


def show_cells(cells: pd.DataFrame, *, left: Sequence[str], console: Console | None = None) -> None:
    """Print *cells*, text by column; columns in *left* are flush left, the others flush right.

    On a terminal that is too narrow an interval goes below its mean. On a pipe the table is Markdown in ASCII.
    """
    console = console or _console()
    if not console.is_terminal or console.options.ascii_only:
        cells = cells.map(lambda text: text.replace("±", "+/-"))
        console.print(_table(cells, left, box.MARKDOWN), soft_wrap=True)
        return
    table = _table(cells, left, box.SIMPLE_HEAD)
    if console.measure(table).maximum > console.width:
        cells = cells.map(lambda text: text.replace(" ± ", "\n± ")).rename(
            columns=lambda title: title.replace(" ", "\n")
        )
        table = _table(cells, left, box.SIMPLE_HEAD)
    console.print(table)


def _console() -> Console:
    if sys.stdout.isatty():
        return Console(file=sys.stdout)
    return Console(file=sys.stdout, width=_PIPE_COLUMNS, force_terminal=False)


def _table(cells: pd.DataFrame, left: Sequence[str], lines: box.Box) -> Table:
    table = Table(box=lines, show_edge=lines is box.MARKDOWN)
    for title in cells.columns:
        table.add_column(Text(title), justify="left" if title in left else "right", vertical="top")
    for row in cells.itertuples(index=False):
        table.add_row(*map(Text, row))
    return table
