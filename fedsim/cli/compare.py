"""``fedsim compare``: finished runs side by side."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, Context
from pathlib import Path
from typing import TYPE_CHECKING

from fedsim.cli.arguments import Commands, add_run_folders, place
from fedsim.errors import nearest

if TYPE_CHECKING:
    import pandas as pd

    from fedsim.experiment.compare import Budget
    from fedsim.experiment.results import Results

__all__ = ["accuracy", "add_to", "budget"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "compare",
        help="Compare the protocols of finished runs.",
        description="Print a row for each protocol: accuracy, loss, simulated time, bytes and what it took to reach "
        "the target, and below it the metrics that were chosen; with several seeds, means and the half width of their "
        "95 % interval (Student's t). Where a seed missed the target, there is a Kaplan-Meier median or a bound. "
        "Among several paths, those that hold no finished run are passed over. The folder of a sweep, alone, has a row "
        "for each point and protocol.",
        allow_abbrev=False,
    )
    add_run_folders(parser)
    parser.add_argument(
        "--at",
        metavar="COLUMN=AMOUNT",
        type=budget,
        help="Compare what was reached when so much was spent, as in --at round=60, --at transfer_bytes=4e9 or --at "
        "sim_time_s=28800: a column of rounds.csv. Closed forms, chosen filters and newcomers are left out: they are "
        "of whole runs.",
    )
    parser.add_argument(
        "--target",
        metavar="ACCURACY",
        type=accuracy,
        help="Tell what this accuracy cost, whatever target the runs had, as in --target 0.8.",
    )
    parser.add_argument(
        "--front",
        action="store_true",
        help="Tell who is on the Pareto front of accuracy against simulated time, and against bytes: nobody else in "
        "the table has at least that accuracy for less. It is one of means: close points are not told apart.",
    )
    parser.add_argument(
        "--format",
        choices=("table", "markdown", "latex", "csv"),
        default="table",
        help="How it is printed: to be read (table; without this option), or to be pasted, with units in the heads "
        "(markdown, latex), or all numbers of the protocols in full (csv).",
    )
    parser.add_argument(
        "--csv",
        metavar="FILE",
        type=place,
        help="Write the same numbers as --format csv to this file, whatever is printed. Only an older comparison is "
        "replaced, and nothing goes into a run folder.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.cli.tables import show_comparison
    from fedsim.experiment.compare import compare
    from fedsim.experiment.several_results import load_finished
    from fedsim.experiment.sweep_manifest import is_sweep

    if len(arguments.folders) == 1 and is_sweep(arguments.folders[0]):
        return _compare_points(arguments)
    results, passed_over = load_finished(arguments.folders)
    path = _csv_file(arguments)
    at, target = arguments.at, arguments.target
    show_comparison(results, at=at, target=target, front=arguments.front, format=arguments.format)
    numbers = compare(results, at=at, target=target)
    for problem in passed_over:
        sys.stderr.write(f"Remark: passed over: {problem}\n")
    for remark in _remarks(results, numbers, arguments):
        sys.stderr.write(f"Remark: {remark}\n")
    _write_csv(numbers, path)
    return 0


def _compare_points(arguments: argparse.Namespace) -> int:
    """The points of a sweep."""
    from fedsim.cli.tables import show_sweep
    from fedsim.experiment.sweep.results import load_sweep

    results, path = load_sweep(arguments.folders[0]), _csv_file(arguments)
    at, target = arguments.at, arguments.target
    show_sweep(results, at=at, target=target, front=arguments.front, format=arguments.format)
    numbers = results.compare(at=at, target=target)
    for remark in [*results.remarks, *_remarks([result for _, result in results.points], numbers, arguments)]:
        sys.stderr.write(f"Remark: {remark}\n")
    _write_csv(numbers, path)
    return 0


def _csv_file(arguments: argparse.Namespace) -> Path | None:
    """Where the numbers are to be written. Raises `UserError` where that cannot be."""
    from fedsim.cli.comparison_file import check_place

    path: Path | None = arguments.csv
    if path is not None:
        check_place(path)
    return path


def _write_csv(numbers: pd.DataFrame, path: Path | None) -> None:
    from fedsim.cli.tables import as_csv
    from fedsim.files import write_atomically

    if path is not None:
        write_atomically(path, as_csv(numbers).encode())


def _remarks(results: Sequence[Results], numbers: pd.DataFrame, arguments: argparse.Namespace) -> Iterator[str]:
    """What a reader of the table could miss."""
    from fedsim.experiment.compare import run_names
    from fedsim.experiment.fronts import FRONTS
    from fedsim.learning.target import CONFIRMING_EVALUATIONS, TOLERANCE

    at, target = arguments.at, arguments.target
    if arguments.front and not numbers[[*FRONTS]].any(axis=None):
        trained = any(result.manifest.get("numeric_family") for result in results)
        why = "no row has a score on every seed" if trained else "nothing was trained in these runs"
        yield f"there is no Pareto front: {why}"
    if at is not None:
        for name, result in zip(run_names(results), results, strict=True):
            for remark in _remarks_on(result.rounds, at):
                yield f"{name}, {remark}" if len(results) > 1 else remark
    if target is not None and not numbers["best_accuracy_n"].any():
        yield f"there is no accuracy here that could reach {target:g}"
    elif target is not None and not numbers["rounds_to_target_n"].any():
        below = f"at most {100 * TOLERANCE:g} points below it"
        yield f"no run reached {target:g} and then averaged {below} in {CONFIRMING_EVALUATIONS} more evaluations"


def _remarks_on(rounds: pd.DataFrame, at: Budget) -> Iterator[str]:
    """What one run has to do with the budget."""
    from fedsim.experiment.compare import ended_before, needed_at_least

    column, amount = at
    short = f"{amount:g}"
    budget = f"{column}={short if float(short) == amount else repr(amount)}"
    if ended := ended_before(rounds, at):
        stands = "stands as it" if len(ended) == 1 else "stand as they"
        yield f"{', '.join(ended)} ended before {budget} was spent, and {stands} ended"
    if needed := needed_at_least(rounds, at):
        what = "round" if rounds["loss"].isna().all() else "evaluation"
        seeds = " on every seed" if rounds["seed"].nunique() > 1 else ""
        each = ", ".join(f"{name} (it takes {_rounded_up(enough):g})" for name, enough in needed.items())
        yield f"{budget} is too little for the first {what}{seeds} of {each}"


def _rounded_up(amount: float) -> float:
    """To the six digits that are shown, and never less."""
    return float(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(amount))


def budget(text: str) -> Budget:
    """What ``--at`` and ``--within`` take."""
    from fedsim.experiment.compare import BUDGETS

    column, _, amount = text.partition("=")
    for name in BUDGETS:
        if name == column and (number := _positive(amount)):
            return name, number
    raise argparse.ArgumentTypeError(
        f"{text!r} must be a column that can be a budget ({', '.join(BUDGETS)}), = and a finite number above 0, as in "
        f"transfer_bytes=4e9{nearest(column, BUDGETS) if column not in BUDGETS else ''}"
    )


def accuracy(text: str) -> float:
    """What ``--target`` takes."""
    if not 0 < (number := _positive(text)) < 1:
        percent = f"; did you mean {number / 100:g}?" if 2 < number < 100 else ""
        raise argparse.ArgumentTypeError(f"{text!r} must be an accuracy between 0 and 1, as in 0.8{percent}")
    return number


def _positive(text: str) -> float:
    """The finite number above 0 that *text* is, or 0."""
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if 0 < number < math.inf else 0.0
