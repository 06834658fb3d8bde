"""``fedsim plot``: figures of finished runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedsim.cli.arguments import Commands, add_run_folders
from fedsim.errors import UserError

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "plot",
        help="Draw the figures of finished runs.",
        description="Draw accuracy and loss over rounds, time and bytes, and each protocol's time and traffic; "
        "overview has the most telling ones side by side. Several run folders are drawn into the same figures.",
        allow_abbrev=False,
    )
    add_run_folders(parser)
    parser.add_argument(
        "--format", choices=("png", "svg"), default="png", help="The file format; png without this option."
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="The folder for the figures; without it, figures/ in the run folder. Needed for several run folders.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.experiment.results import load_results
    from fedsim.viz.save import save_figures

    results = [load_results(folder) for folder in arguments.folders]
    if arguments.out is None and len(results) > 1:
        raise UserError("several run folders share their figures: say where to put them with --out DIR")
    folder = arguments.folders[0] / "figures" if arguments.out is None else arguments.out
    try:
        paths = save_figures(results, folder, arguments.format)
    except OSError as error:
        raise UserError(f"cannot write figures into {folder}: {error.strerror or error}") from None
    sys.stdout.writelines(f"{path}\n" for path in paths)
    return 0
