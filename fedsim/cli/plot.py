"""``fedsim plot``: figures of finished runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedsim.cli.arguments import Commands, add_run_folders, place
from fedsim.errors import UserError

__all__ = ["add_to"]

_DRAWN = {"critical_path.csv": "what rounds are made of", "link_loads.csv": "the load of links over time"}
"""By the table that it is drawn from."""


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "plot",
        help="Draw the figures of finished runs.",
        description="Draw accuracy and loss over rounds, time and bytes, and each protocol's time and traffic; "
        "overview has the most telling ones side by side, confusion shows which class was taken for which, and network "
        "how loaded the air and the wires were. "
        "Several run folders are drawn into the same figures, apart from their confusions and networks. Of a sweep's "
        "folder, alone, lines and heat maps over the varied keys are drawn.",
        allow_abbrev=False,
    )
    add_run_folders(parser)
    parser.add_argument(
        "--format", choices=("png", "svg", "pdf"), default="png", help="The file format; png without this option."
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=place,
        help="The folder for the figures; without it, figures/ in the given folder. Needed for several folders.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.experiment.compare import run_names
    from fedsim.experiment.explain import lost_times
    from fedsim.experiment.figures import save_figures
    from fedsim.experiment.network_drawings import draw_run
    from fedsim.experiment.read_results import has_lost
    from fedsim.experiment.several_results import load_finished
    from fedsim.experiment.sweep_manifest import is_sweep
    from fedsim.scenario.scalars import printable

    if len(arguments.folders) == 1 and is_sweep(arguments.folders[0]):
        return _plot_points(arguments)
    results, passed_over = load_finished(arguments.folders)
    if arguments.out is None and len(results) > 1:
        raise UserError("several run folders share their figures: say where to put them with --out DIR")
    folder = _folder(arguments, results[0].folder)
    remarks = [f"Remark: passed over: {problem}\n" for problem in passed_over]
    paths = save_figures(results, folder, arguments.format)
    for number, (result, name) in enumerate(zip(results, run_names(results), strict=True), start=1):
        which = f"network-{number}" if len(results) > 1 else "network"
        try:
            paths.append(draw_run(result, folder / f"{which}.{arguments.format}", name))
        except UserError as error:  # the tables are enough for all other figures
            remarks.append(f"fedsim: the network of {printable(str(result.folder))} is not drawn: {error}\n")
        for lost in lost_times(result):
            if what := _DRAWN.get(lost):
                remarks.append(f"fedsim: {what} is not drawn: {has_lost(result.folder / lost)}\n")
    sys.stdout.writelines(f"{printable(str(path))}\n" for path in paths)
    sys.stderr.writelines(remarks)
    return 0


def _plot_points(arguments: argparse.Namespace) -> int:
    """The points of a sweep."""
    from fedsim.experiment.figures import save_sweep_figures
    from fedsim.experiment.sweep.results import load_sweep
    from fedsim.scenario.scalars import printable

    results = load_sweep(arguments.folders[0])
    paths = save_sweep_figures(results, _folder(arguments, results.folder), arguments.format)
    sys.stdout.writelines(f"{printable(str(path))}\n" for path in paths)
    return 0


def _folder(arguments: argparse.Namespace, of_run: Path) -> Path:
    """Where the figures go. Raises `UserError` where that cannot be."""
    from fedsim.files import why_no_folder

    folder: Path = of_run / "figures" if arguments.out is None else arguments.out
    if problem := why_no_folder(folder):
        raise UserError(f"{problem}; choose another folder with --out")
    return folder
