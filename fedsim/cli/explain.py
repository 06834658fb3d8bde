"""``fedsim explain``: where the time of finished runs went."""

from __future__ import annotations

import argparse
import sys

from fedsim.cli.arguments import Commands, add_run_folders, at_least_one
from fedsim.errors import UserError

__all__ = ["add_to"]

MOST = 5


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "explain",
        help="Say where the time of finished runs went.",
        description="Print, for each protocol, what its rounds were made of: waiting for links, sending, training, "
        "waiting for a deadline, and so on along the critical path of each round; then the clients for which most "
        "rounds have waited, and the busiest links. docs/where_time_goes.md says what each part means.",
        allow_abbrev=False,
    )
    add_run_folders(parser)
    parser.add_argument(
        "--most",
        metavar="N",
        type=at_least_one,
        default=MOST,
        help=f"Show so many clients and links of each protocol at most; {MOST} without this option.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.cli.tables import show_cells
    from fedsim.experiment.explain import busiest_links, parts_of_rounds, worst_stragglers
    from fedsim.experiment.several_results import load_several
    from fedsim.viz.time_tables import link_cells, part_cells, straggler_cells

    results = load_several(arguments.folders)
    parts = parts_of_rounds(results)
    if parts.empty:
        raise UserError("no round has ended in these runs, so there is no time to explain")
    tables = {
        "What a round is made of: mean length, and the share of each part of its critical path": part_cells(parts),
        "Clients for which most rounds have waited": straggler_cells(worst_stragglers(results, arguments.most)),
        "The busiest links: means over the simulated time": link_cells(busiest_links(results, arguments.most)),
    }
    for number, (title, cells) in enumerate(tables.items()):
        if len(cells):
            sys.stdout.write(f"{'' if number == 0 else chr(10)}{title}\n\n")
            show_cells(cells, left=("run", "protocol", "client", "link", "direction"))
    return 0
