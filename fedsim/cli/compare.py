"""``fedsim compare``: finished runs side by side."""

from __future__ import annotations

import argparse
from pathlib import Path

from fedsim.cli.arguments import Commands, add_run_folders
from fedsim.errors import UserError

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "compare",
        help="Compare the protocols of finished runs.",
        description="Print a row for each protocol: accuracy, loss, simulated time, bytes and what it took to reach "
        "the target; with several seeds, means and the half width of their 95 % interval (Student's t).",
        allow_abbrev=False,
    )
    add_run_folders(parser)
    parser.add_argument(
        "--csv", metavar="FILE", type=Path, help="Write the numbers, all of them and in full, to this file."
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.cli.tables import show_comparison
    from fedsim.experiment.compare import compare
    from fedsim.experiment.results import load_results
    from fedsim.scenario.scalars import printable

    results = [load_results(folder) for folder in arguments.folders]
    show_comparison(results)
    if arguments.csv is not None:
        try:
            compare(results).to_csv(arguments.csv, index=False, lineterminator="\n")
        except OSError as error:
            place = printable(str(arguments.csv))
            raise UserError(f"--csv: cannot write {place}: {error.strerror or error}") from None
    return 0
