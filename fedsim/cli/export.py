"""``fedsim export``: finished runs for other tools."""

from __future__ import annotations

import argparse
import sys

from fedsim.cli.arguments import Commands, add_run_folders, place

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "export",
        help="Write results for TensorBoard, MLflow or as Parquet.",
        description="Write the results of finished runs as another tool reads them. The run folders stay as they are.",
        allow_abbrev=False,
    )
    add_run_folders(parser)
    parser.add_argument(
        "--to", metavar="TOOL", required=True, help="The tool: tensorboard, mlflow or parquet (fedsim list exporters)."
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=place,
        help="The folder for the export, as a whole: an export that is there is replaced, anything else is refused. "
        "Without it, exports/TOOL in the folder that is given. Needed for several folders.",
    )
    parser.add_argument(
        "--tracking-uri",
        metavar="URI",
        help="With --to mlflow: add the runs to this tracking server (http://...) or database (sqlite:///...), instead "
        "of writing a folder. Without --out, the environment variable MLFLOW_TRACKING_URI does the same.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.experiment.exports.export import export
    from fedsim.scenario.scalars import printable

    where = export(arguments.folders, arguments.to, out=arguments.out, tracking_uri=arguments.tracking_uri)
    sys.stdout.write(f"{printable(str(where))}\n")
    return 0
