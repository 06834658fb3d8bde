"""``fedsim retime``: what a run has learned, over time on another network."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from fedsim.cli.arguments import Commands, add_overrides, place

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "retime",
        help="Time a finished run anew, on another network.",
        description="Run the clock of a finished run's scenario with changes, and take from its store what was "
        "learned: the tables are those of a full run, in seconds. Where the change would alter what is trained, it is "
        "refused, with the first round that differs. The run itself stays as it is.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", metavar="RUN_DIR", type=Path, help="The folder of the finished run.")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=place,
        help="The new run folder; without it, runs/ and the scenario's name with -retimed behind it.",
    )
    add_overrides(parser)
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="Print tables on standard output, errors on standard error, and nothing else: no progress, remarks, "
        "warnings or paths.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.cli.progress import progress
    from fedsim.cli.tables import show_comparison
    from fedsim.experiment.retime import retime
    from fedsim.scenario.scalars import printable

    try:
        with progress(quiet=arguments.quiet) as display:
            results = retime(arguments.folder, arguments.overrides, out=arguments.out, observer=display)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; give the same command again") from None
    show_comparison([results], quiet=arguments.quiet)
    if not arguments.quiet:
        sys.stdout.flush()
        original, folder = (printable(shlex.join([str(path)])) for path in (arguments.folder, results.folder))
        nothing_new = "" if display.saw_a_run else " (it was there already)"
        sys.stderr.write(f"Results: {folder}{nothing_new}\nCompare with the run: fedsim compare {original} {folder}\n")
    return 0
