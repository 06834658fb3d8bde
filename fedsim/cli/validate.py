"""``fedsim validate``: is everything right that can be checked without a run?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from fedsim.cli.arguments import MOST_NODES, Commands, add_limits, add_overrides, add_scenario

if TYPE_CHECKING:
    from fedsim.protocols.world import World
    from fedsim.scenario.build import Materials
    from fedsim.scenario.sweep_settings import SweepSettings

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "validate",
        help="Check a scenario without running it.",
        description="Check a scenario: its keys and values, its topology and data, and whether they fit each other.",
        allow_abbrev=False,
    )
    add_scenario(parser)
    add_overrides(parser)
    add_limits(parser)
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.experiment.gc_policy import set_aside
    from fedsim.experiment.remarks_before import remarks_before, remarks_on_data
    from fedsim.experiment.validate import seeds_tried, validate
    from fedsim.quick import in_seconds
    from fedsim.scenario.load import load
    from fedsim.scenario.scalars import printable
    from fedsim.topology.sketch import most_nodes

    remarks: list[str] = []

    def look(materials: Materials, _: World) -> None:
        remarks.extend(remarks_before(scenario, materials))

    with (
        set_aside(journeys=MOST_NODES),
        most_nodes(arguments.most_nodes),
        in_seconds(not arguments.all_data),
    ):
        scenario = load(arguments.scenario, overrides=arguments.overrides)
        materials = validate(scenario, look, every_seed=False)
        remarks += remarks_on_data(scenario, materials)
        points = 0 if scenario.sweep is None else _points(scenario.sweep, arguments)
    tried, seeds = seeds_tried(scenario, materials), len(scenario.seeds)
    counts = (
        _count(len(materials.topology.sensors), "client"),
        _count(len(scenario.protocols), "protocol"),
        _count(seeds, "seed") + (f" (the first {tried} were tried; a run tries all)" if tried < seeds else ""),
        *(
            f"a model of {table.parameters():,.0f} parameters ({table.bytes():,.0f} bytes)"
            for table in materials.tables
        ),
        *([f"a sweep of {_count(points, 'point')} (their worlds were not built)"] if points else []),
    )
    sys.stdout.write(f"{printable(str(arguments.scenario))} is fine: {', '.join(counts)}\n")
    sys.stdout.writelines(f"Remark: {remark}\n" for remark in remarks)
    return 0


def _points(sweep: SweepSettings, arguments: argparse.Namespace) -> int:
    """How many points the section sweep has. Raises `UserError` when one of them is no scenario."""
    from fedsim.experiment.sweep.points import points_of
    from fedsim.experiment.sweep.variation import from_settings

    return len(points_of(arguments.scenario, arguments.overrides, from_settings(sweep)))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
