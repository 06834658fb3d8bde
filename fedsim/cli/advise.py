"""``fedsim advise``: which protocol, at which values of some keys, reaches an accuracy within budgets?"""

from __future__ import annotations

import argparse
import shlex
import sys
import textwrap
from typing import TYPE_CHECKING

from fedsim.cli.arguments import (
    Commands,
    add_overrides,
    add_pool,
    add_scenario,
    add_training,
    host_options,
    place,
    whole_numbers,
)
from fedsim.cli.compare import accuracy, budget
from fedsim.errors import UserError

if TYPE_CHECKING:
    from fedsim.experiment.advise.advise import Advice
    from fedsim.experiment.compare import Budget

__all__ = ["add_to"]

_WIDTH = 100


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "advise",
        help="Find what reaches an accuracy within budgets.",
        description="Which protocol, at which values of some keys, reaches this accuracy within these budgets? Network "
        "times are found first, without training. Then candidates train on one seed, and the better half of them goes "
        "on; at last those that reach the accuracy train on all seeds. Print a table of all candidates, what can be "
        "said with 95 % intervals, and the command that runs the best one. A search that was interrupted goes on.",
        allow_abbrev=False,
    )
    add_scenario(parser)
    parser.add_argument(
        "--target", metavar="ACCURACY", type=accuracy, required=True, help="The accuracy, as in --target 0.9."
    )
    parser.add_argument(
        "--within",
        metavar="COLUMN=AMOUNT",
        type=budget,
        action="append",
        default=[],
        help="What may be spent, as in --within sim_time_s=28800 --within transfer_bytes=1e9: columns of rounds.csv. "
        "At least one is sim_time_s, transfer_bytes or round. Without it, what the scenario's stop says.",
    )
    parser.add_argument(
        "--by",
        metavar="COLUMN",
        help="The cost that decides which candidate is the best: sim_time_s, transfer_bytes or round; without it, the "
        "first --within.",
    )
    parser.add_argument(
        "--vary",
        metavar="KEY.PATH=V1,V2",
        action="append",
        default=[],
        help="A key, as in --set, and its values: --vary network.cell.radio.profile=nb_iot_nb1,lte_m_m1. Several are "
        "combined. Without it, what the scenario's section sweep says, or its protocols alone.",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=place,
        help="The search's folder; without it, runs/, the scenario's name and -advice.",
    )
    add_overrides(parser)
    parser.add_argument(
        "--seeds", metavar="1,2,3", type=whole_numbers, help="Use these seeds instead of the scenario's."
    )
    add_pool(parser)
    add_training(parser)
    parser.add_argument(
        "--format",
        choices=("table", "markdown", "latex", "csv"),
        default="table",
        help="How the table is printed: to be read (table; without this option), or to be pasted, with units in the "
        "heads (markdown, latex), or all numbers in full (csv).",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="Print the table and the verdict, and nothing else but errors."
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.cli.tables import show_advice
    from fedsim.experiment.advise.advise import advise_variation
    from fedsim.experiment.sweep.variation import from_options

    overrides = list(arguments.overrides)
    if arguments.seeds is not None:
        overrides.append(f"seeds={arguments.seeds}")
    try:
        advice = advise_variation(
            arguments.scenario,
            from_options(arguments.vary) if arguments.vary else None,
            target=arguments.target,
            within=_budgets(arguments.within),
            by=arguments.by,
            overrides=overrides,
            out=arguments.out,
            store=arguments.store,
            pool=arguments.pool,
            pool_size=arguments.pool_size,
            options=host_options(arguments),
            progress=not arguments.quiet,
        )
    except KeyboardInterrupt:
        command = shlex.join(["fedsim", *arguments.words])
        raise KeyboardInterrupt(f"interrupted; go on with: {command}") from None
    show_advice(advice, format=arguments.format)
    _show_verdict(advice, arguments)
    return 0


def _budgets(given: list[Budget]) -> dict[str, float]:
    found: dict[str, float] = {}
    for column, most in given:
        if column in found:
            raise UserError(f"--within {column}={most:g}: stands twice; give each budget once")
        found[column] = most
    return found


def _show_verdict(advice: Advice, arguments: argparse.Namespace) -> None:
    """Below the table; on standard error where the table is to be pasted."""
    from fedsim.scenario.scalars import printable

    stream = sys.stdout if arguments.format == "table" else sys.stderr
    stream.write(f"\n{textwrap.fill(printable(advice.verdict), _WIDTH, break_long_words=False)}\n")
    if not arguments.quiet:
        sys.stdout.flush()
        if advice.command is not None:
            sys.stderr.write(f"Run it: {printable(advice.command)}\n")
        sys.stderr.write(f"All numbers: {printable(str(advice.folder / 'advice.csv'))}\n")
