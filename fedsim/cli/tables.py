"""Tables: drawn for the width of a terminal, and as plain Markdown where the output is piped."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedsim import registry
from fedsim.experiment.compare import compare, run_names
from fedsim.experiment.compare_device_classes import compare_device_classes
from fedsim.experiment.planned_costs import planned_costs
from fedsim.experiment.remarks_after import remarks
from fedsim.viz.tables import comparison_cells, cost_cells, further_tables, number_cells

if TYPE_CHECKING:
    import pandas as pd

    from fedsim.experiment.compare import Budget
    from fedsim.experiment.results import Results

__all__ = ["markdown", "show_cells", "show_comparison", "show_paper_table"]

_ANY_WIDTH = 10_000
COSTS = "What a round takes, by device class: means of one device over the run, and the busiest cell"


def show_comparison(
    results: Sequence[Results], *, at: Budget | None = None, target: float | None = None, quiet: bool = False
) -> None:
    """Print the protocols of *results* side by side; unless *quiet*, what could be misread goes to standard error."""
    further = () if at is None else (at[0],)
    compared = compare(results, at=at, target=target)
    shown = comparison_cells(compared, further)
    of_classes = compare_device_classes(results, at=at, target=target)  # before anything is printed: it may be damaged
    costs = planned_costs(results)
    said = [] if quiet else list(map(remarks, results))
    show_cells(shown, left=("run", "protocol"))
    if len(of_classes):
        sys.stdout.write("\nBy device class: own models, and bytes of one device\n\n")
        cells = comparison_cells(of_classes, further).drop(columns="rounds")  # the run's: they stand above
        show_cells(cells, left=("run", "protocol", "device class"))
    if len(costs):
        sys.stdout.write(f"\n{COSTS}\n\n")
        show_cells(cost_cells(costs), left=("run", "protocol", "device class"))
    for title, cells in further_tables(compared):
        sys.stdout.write(f"\n{title}\n\n")
        show_cells(cells, left=("run", "protocol", "class", "true class", "class of samples"))
    sys.stdout.flush()
    for name, of_run in zip(run_names(results), said, strict=True) if said else ():
        for remark in of_run:
            sys.stderr.write(f"Remark: {f'{name}, ' if len(results) > 1 else ''}{remark}\n")


def show_paper_table(name: str, results: Results) -> None:
    """Print a published table beside *results*."""
    table: pd.DataFrame = registry.load("paper_tables", name)(results)
    sys.stdout.write(f"\n{registry.first_sentence('paper_tables', name)}\n\n")
    if table.empty:
        sys.stdout.write("Nothing of this run is in it.\n")
    else:
        show_cells(number_cells(table), left=("system", "quantity", "unit"))


def show_cells(cells: pd.DataFrame, *, left: Sequence[str], console: Console | None = None) -> None:
    """Print *cells*, text by column; the columns named in *left* flush left, the others flush right.

    On a terminal that is too narrow an interval goes below its mean, which keeps the unit; if that is not enough, each
    run gets a table of its own, which is then as wide as its words ask for. On a pipe it is Markdown.
    """
    console = console or Console(file=sys.stdout)
    if not console.is_terminal or console.options.ascii_only:
        console.file.write(markdown(cells, left=left))
        return
    table = _drawn(cells, left)
    if _width(table, console) > console.width:
        table = _drawn(cells.map(_folded).rename(columns=lambda title: title.replace(" ", "\n")), left)
    table.width = _width(table, console)
    if table.width > console.width and "run" in cells:
        for position, (run, rows) in enumerate(cells.groupby("run", sort=False)):
            console.print(Text(f"\n{run}" if position else str(run), style="bold"), soft_wrap=True)
            filled = rows.loc[:, (rows != "").any()].drop(columns="run")
            show_cells(filled, left=left, console=console)
        return
    console.print(table, crop=False)


def markdown(cells: pd.DataFrame, *, left: Sequence[str]) -> str:
    """*cells* as a Markdown table that is also easy to read as it is; ``±`` becomes ``+/-``, ``µ`` ``u``."""
    columns = []
    for title in cells:
        texts = [str(title), *(text.replace("±", "+/-").replace("µ", "u").replace("|", r"\|") for text in cells[title])]
        width = max(map(len, texts))
        if title in left:
            texts, rule = [text.ljust(width) for text in texts], "-" * width
        else:
            texts, rule = [text.rjust(width) for text in texts], "-" * (width - 1) + ":"
        columns.append([texts[0], rule, *texts[1:]])
    return "".join(f"| {' | '.join(line)} |\n" for line in zip(*columns, strict=True))


def _folded(text: str) -> str:
    """The same in a narrower cell.

    >>> _folded("2.66 ± 0.19 min (2 of 3)")
    '2.66 min\\n± 0.19\\n(2 of 3)'
    """
    return re.sub(r"^(\S+) ± (\S+)( [^(]\S*)?", r"\1\3\n± \2", text).replace(" (", "\n(")


def _width(table: Table, console: Console) -> int:
    """The columns that *table* needs to break no line of a cell."""
    return console.measure(table, options=console.options.update(width=_ANY_WIDTH)).maximum


def _drawn(cells: pd.DataFrame, left: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for title in cells:
        justify = "left" if str(title).replace("\n", " ") in left else "right"
        table.add_column(Text(str(title)), justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for row in cells.itertuples(index=False):
        table.add_row(*map(Text, row))
    return table
