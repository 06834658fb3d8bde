"""``fedsim describe``: a scenario in numbers, before anything is trained."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedsim.cli.arguments import MOST_NODES, Commands, add_limits, add_overrides, add_scenario, at_least_one, place
from fedsim.errors import UserError

if TYPE_CHECKING:
    from fedsim.scenario.build import Materials
    from fedsim.scenario.schema import Scenario
    from fedsim.viz.tables import DescriptionTable

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "describe",
        help="Tell what a scenario is made of, and what a round will take.",
        description="Print tables of a scenario's data, network and model, on its first seed, and of what a round of "
        "each protocol takes: its first two rounds are simulated with nothing learned, and what the whole run takes is "
        "estimated from them. Nothing is trained.",
        allow_abbrev=False,
    )
    add_scenario(parser)
    add_overrides(parser)
    add_limits(parser)
    parser.add_argument(
        "--out", metavar="DIR", type=place, help="Write the same numbers, as describe.json, and figures to this folder."
    )
    parser.add_argument(
        "--link",
        metavar="DEVICE",
        dest="links",
        action="append",
        help="Print only the link of this sensor over the air, term by term, and what a model takes over it; nothing "
        "is simulated. May be given several times.",
    )
    parser.add_argument(
        "--most-hops",
        metavar="N",
        type=at_least_one,
        help="Simulate messages over at most so many hops, for all protocols together; without it, 500,000, which "
        "takes some seconds.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.experiment.describe import MOST_HOPS, describe
    from fedsim.experiment.description.link import describe_links
    from fedsim.experiment.gc_policy import rare_collections
    from fedsim.files import why_no_folder
    from fedsim.quick import in_seconds
    from fedsim.scenario.load import load
    from fedsim.scenario.scalars import printable
    from fedsim.topology.sketch import most_nodes

    folder: Path | None = arguments.out
    if arguments.links and folder is not None:
        raise UserError("--link prints links and writes no files; leave --out or --link out")
    if folder is not None and (problem := why_no_folder(folder)):
        raise UserError(f"--out: {problem}; choose another folder")
    with (
        rare_collections(journeys=MOST_NODES),
        most_nodes(arguments.most_nodes),
        in_seconds(not arguments.all_data),
    ):
        scenario = load(arguments.scenario, overrides=arguments.overrides)
        if arguments.links:
            _print_links(describe_links(scenario, list(dict.fromkeys(arguments.links))))
            return 0
        facts, materials = describe(scenario, most_hops=arguments.most_hops or MOST_HOPS)
    save = None if folder is None else partial(_save, scenario, facts, materials, folder)
    del materials  # where nobody asks for figures, tables have its room
    _print_facts(facts)
    if save is not None:
        sys.stderr.writelines(f"{printable(str(path))}\n" for path in save())
    return 0


def _print_links(links: list[dict[str, Any]]) -> None:
    from fedsim.viz.describe_network import link_tables

    _print(table for link in links for table in link_tables(link))


def _print_facts(facts: dict[str, Any]) -> None:
    from fedsim.viz.describe_tables import description_tables  # loads pandas, for which there is room only now

    _print(description_tables(facts))


def _print(tables: Iterable[DescriptionTable]) -> None:
    from fedsim.cli.tables import show_cells

    for position, table in enumerate(tables):
        sys.stdout.write("\n" if position else "")
        show_cells(table.cells, left=table.left)
    sys.stdout.flush()


def _save(scenario: Scenario, facts: dict[str, Any], materials: Materials, folder: Path) -> list[Path]:
    import json

    from fedsim.experiment.describe import plain
    from fedsim.experiment.network_drawings import draw_scenario
    from fedsim.files import write_atomically
    from fedsim.viz.data_figures import save_data_figures

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "describe.json"
    write_atomically(path, (json.dumps(plain(facts), indent=2, allow_nan=False) + "\n").encode())
    figures = save_data_figures(materials.dataset, materials.topology, folder, scenario.data.text)
    drawing = draw_scenario(scenario, folder / "network.png", topology=materials.topology)
    return [path, drawing, *figures]
