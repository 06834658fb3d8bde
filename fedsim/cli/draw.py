"""``fedsim draw``: a picture of a scenario's network."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedsim.cli.arguments import Commands, add_overrides, add_scenario, place
from fedsim.errors import UserError

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "draw",
        help="Draw the network of a scenario.",
        description="Draw a scenario's topology: sensors, base stations, edge servers, clouds and wires, in place if "
        "they have positions; wires with planned outages are dashed. Nothing is run. With --colour, each sensor has "
        "the colour of its uplink; with --run, colours show how loaded the air and wires of a run were.",
        allow_abbrev=False,
    )
    add_scenario(parser)
    add_overrides(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=place,
        help="The picture, a .png, .svg or .pdf; without it, the scenario's name and -topology.png.",
    )
    parser.add_argument(
        "--run", metavar="RUN_DIR", type=Path, help="The folder of a finished run on this network, for its loads."
    )
    parser.add_argument(
        "--colour",
        choices=("snr", "class", "rate"),
        help="Colour each sensor by its uplink at time zero: signal-to-noise ratio, coverage class, or rate.",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, help="The seed for --colour; without it, the scenario's first seed."
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.experiment.network_drawings import FORMATS, draw_scenario
    from fedsim.experiment.results import load_results
    from fedsim.files import why_no_folder
    from fedsim.scenario.load import load

    if arguments.colour and arguments.run is not None:
        raise UserError("--colour and --run both give colours to the picture; leave one out")
    if arguments.seed is not None and not arguments.colour:
        raise UserError("--seed is for --colour, as the network is the same on every seed; give --colour, too")
    seed = [] if arguments.seed is None else [f"seeds=[{arguments.seed}]"]
    scenario = load(arguments.scenario, overrides=[*arguments.overrides, *seed])
    path = Path(f"{scenario.name}-topology.png") if arguments.out is None else arguments.out
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"--out: {str(path)!r} must end in one of {', '.join(FORMATS)}; rename it")
    if problem := why_no_folder(path.parent):
        raise UserError(f"--out: {problem}; choose another place for the picture")
    results = None if arguments.run is None else load_results(arguments.run)
    draw_scenario(scenario, path, results, colour=arguments.colour)
    sys.stdout.write(f"{path}\n")
    return 0
