"""Tables: drawn for the width of a terminal, as plain Markdown where the output is piped, or to be pasted."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedsim import registry
from fedsim.cli.paper_formats import latex, markdown_text
from fedsim.experiment.compare import compare, run_names
from fedsim.experiment.compare_device_classes import compare_device_classes
from fedsim.experiment.planned_costs import planned_costs
from fedsim.experiment.remarks_after import remarks
from fedsim.scenario.scalars import printable
from fedsim.viz.advice_table import advice_cells
from fedsim.viz.tables import COSTS, DEVICE_CLASSES, comparison_cells, cost_cells, further_tables, number_cells

if TYPE_CHECKING:
    import pandas as pd

    from fedsim.experiment.advise.advise import Advice
    from fedsim.experiment.compare import Budget
    from fedsim.experiment.results import Results
    from fedsim.experiment.sweep.results import SweepResults

__all__ = [
    "Format",
    "as_csv",
    "markdown",
    "show_advice",
    "show_cells",
    "show_comparison",
    "show_paper_table",
    "show_sweep",
]

_ANY_WIDTH = 10_000


def show_comparison(
    results: Sequence[Results],
    *,
    at: Budget | None = None,
    target: float | None = None,
    front: bool = False,
    format: Format = "table",
    quiet: bool = False,
) -> None:
    """Print the protocols of *results* side by side; unless *quiet*, what could be misread goes to standard error.

    *front* tells who is on a Pareto front. Of the formats, ``table`` is for eyes, the others are to be pasted: they
    have units in the heads. ``csv`` has the numbers of the protocols alone, all of them and in full.
    """
    compared = compare(results, at=at, target=target)
    tables = [] if format == "csv" else list(_tables(results, compared, at, target, front, format != "table"))
    said = [] if quiet else list(map(remarks, results))
    if format == "csv":
        sys.stdout.write(as_csv(compared))
    for place, (title, cells, left) in enumerate(tables):
        _WRITERS[format](title, cells, left, bool(place))
    sys.stdout.flush()
    for name, of_run in zip(run_names(results), said, strict=True) if said else ():
        for remark in of_run:
            sys.stderr.write(f"Remark: {f'{name}, ' if len(results) > 1 else ''}{remark}\n")


def show_sweep(
    results: SweepResults,
    *,
    at: Budget | None = None,
    target: float | None = None,
    front: bool = False,
    format: Format = "table",
) -> None:
    """Print a row for each point and protocol of a sweep, its values of the varied keys before all else."""
    compared, keys = results.compare(at=at, target=target), results.manifest.short_keys
    if format == "csv":
        sys.stdout.write(as_csv(compared))
        return
    further = () if at is None else (at[0],)
    cells = comparison_cells(compared, further, front=front, units_in_head=format != "table")
    cells = cells.drop(columns="run", errors="ignore")
    for position, key in enumerate(keys):
        cells.insert(position, key, [printable(str(value)) for value in compared[key]])
    _WRITERS[format]("", cells, (*keys, "protocol"), False)
    sys.stdout.flush()


def show_advice(advice: Advice, *, format: Format = "table") -> None:
    """Print a row for each candidate of a search, and below it the verdict, but with ``csv``."""
    if format == "csv":
        sys.stdout.write(as_csv(advice.table))
        return
    cells = advice_cells(advice.table, advice.keys, advice.within, units_in_head=format != "table")
    _WRITERS[format]("", cells, (*advice.keys, "protocol", "left out"), False)
    sys.stdout.flush()


def as_csv(compared: pd.DataFrame) -> str:
    """All numbers of a comparison, in full."""
    return compared.to_csv(index=False, lineterminator="\n")


def _tables(
    results: Sequence[Results],
    compared: pd.DataFrame,
    at: Budget | None,
    target: float | None,
    front: bool,
    units_in_head: bool,
) -> Iterator[tuple[str, pd.DataFrame, tuple[str, ...]]]:
    """Title, cells and the columns that are flush left; the first has no title."""
    further = (*(() if at is None else (at[0],)), *(("rounds_to_target",) if units_in_head else ()))
    cells = comparison_cells(compared, further, front=front, units_in_head=units_in_head)
    yield "", cells, ("run", "protocol")
    of_classes = compare_device_classes(results, at=at, target=target)
    if len(of_classes):
        cells = comparison_cells(of_classes, further, units_in_head=units_in_head)
        yield (
            DEVICE_CLASSES,
            cells.drop(columns="rounds"),  # the run's: they stand above
            ("run", "protocol", "device class"),
        )
    costs = planned_costs(results)
    if len(costs):
        yield COSTS, cost_cells(costs, units_in_head=units_in_head), ("run", "protocol", "device class")
    for title, cells in further_tables(compared, units_in_head=units_in_head):
        yield title, cells, ("run", "protocol", "class", "true class", "class of samples")


def _drawn_below(title: str, cells: pd.DataFrame, left: Sequence[str], below: bool) -> None:
    sys.stdout.write(f"\n{title}\n\n" if below else "")
    show_cells(cells, left=left)


def _markdown_below(title: str, cells: pd.DataFrame, left: Sequence[str], below: bool) -> None:
    sys.stdout.write(f"\n{markdown_text(title)}\n\n" if below else "")
    names = {str(name): cells[name].map(markdown_text) for name in cells if name in left}
    escaped = cells.assign(**names).rename(columns=lambda head: markdown_text(str(head)))
    sys.stdout.write(_piped(escaped, left=left))


def _latex_below(title: str, cells: pd.DataFrame, left: Sequence[str], below: bool) -> None:
    sys.stdout.write(f"\n% {title}\n" if below else "% needs \\usepackage{booktabs}\n")
    sys.stdout.write(latex(cells, left=left))


Format: TypeAlias = Literal["table", "markdown", "latex", "csv"]
_WRITERS = {"table": _drawn_below, "markdown": _markdown_below, "latex": _latex_below}


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
    plain = {"±": "+/-", "µ": "u", "|": r"\|"}
    return _piped(cells.map(lambda text: re.sub("[±µ|]", lambda sign: plain[sign[0]], text)), left=left)


def _piped(cells: pd.DataFrame, *, left: Sequence[str]) -> str:
    """Lines with pipes, in columns of one width."""
    columns = []
    for title in cells:
        texts = [str(title), *cells[title]]
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
