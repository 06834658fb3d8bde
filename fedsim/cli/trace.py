"""``fedsim trace``: timelines of a finished run, for ui.perfetto.dev."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedsim.cli.arguments import Commands, place
from fedsim.errors import UserError

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "trace",
        help="Write timelines of a finished run for ui.perfetto.dev.",
        description="Simulate a finished run again, without training, and write a timeline of each protocol and seed: "
        "what each device sends, receives and computes, the rounds, and how many messages are on each link. Open the "
        "files at https://ui.perfetto.dev, which keeps them on your machine. A run whose timing depends on what was "
        "learned is refused.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", metavar="RUN_DIR", type=Path, help="The folder of a finished run.")
    parser.add_argument("--only", metavar="PROTOCOL", help="Only this protocol of the run, by its name in the results.")
    parser.add_argument(
        "--out", metavar="DIR", type=place, help="The folder for the files; without it, traces/ in the run folder."
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.experiment.results import load_results
    from fedsim.experiment.timelines import write_timelines
    from fedsim.files import why_no_folder
    from fedsim.scenario.scalars import printable

    results = load_results(arguments.folder)
    folder = results.folder / "traces" if arguments.out is None else arguments.out
    if problem := why_no_folder(folder):
        raise UserError(f"{problem}; choose another folder with --out")
    for path in write_timelines(results, folder, only=arguments.only):
        sys.stdout.write(f"{printable(str(path))}\n")
        sys.stdout.flush()
    return 0
