"""``fedsim report``: finished runs as one page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedsim.cli.arguments import Commands, add_run_folders, place
from fedsim.errors import UserError

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "report",
        help="Write one HTML page about finished runs.",
        description="Write a page with the scenario, the comparison, charts with the numbers behind them, the load of "
        "the network and where the results come from. It is one file, which a browser opens without a network. "
        "Several run folders are compared on one page. A report that is there already is replaced.",
        allow_abbrev=False,
    )
    add_run_folders(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=place,
        help="The page, a .html; without it, report.html in the folder that is given. Needed for several folders.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.experiment.several_results import load_finished
    from fedsim.report.libraries import need_libraries
    from fedsim.scenario.scalars import printable

    need_libraries()
    if arguments.out is None and len(arguments.folders) > 1:
        raise UserError("several run folders share a report: say where to put it with --out FILE.html")
    results, passed_over = load_finished(arguments.folders)
    from fedsim.report.page import write_report

    path: Path = arguments.folders[0] / "report.html" if arguments.out is None else arguments.out
    missing = write_report(results, path)
    sys.stdout.write(f"{printable(str(path))}\n")
    for problem in passed_over:
        sys.stderr.write(f"Remark: passed over: {problem}\n")
    for sentence in missing:
        sys.stderr.write(f"fedsim: {sentence[0].lower()}{sentence[1:].removesuffix('.')}\n")
    return 0
