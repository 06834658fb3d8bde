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
    path: Path | None = arguments.csv
    if path is not None and (problem := _why_no_file(path)):
        raise UserError(f"--csv: cannot write {printable(str(path))}: {problem}")
    show_comparison(results)
    if path is not None:
        numbers = compare(results).to_csv(index=False, lineterminator="\n")
        path.write_text(numbers, encoding="utf-8", newline="")
    return 0


def _why_no_file(path: Path) -> str | None:
    """Why nothing can be written to *path*, as far as that can be known before."""
    from fedsim.files import why_no_folder

    if path.is_dir():
        return "it is a folder"
    return why_no_folder(path.parent) or (None if path.parent.is_dir() else "there is no such folder")
