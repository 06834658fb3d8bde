"""``fedsim sweep``: a scenario with many values of some keys, and one table of what came of them."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from fedsim.cli.arguments import (
    Commands,
    add_overrides,
    add_pool,
    add_scenario,
    add_training,
    host_options,
    place,
    reason,
    whole_numbers,
)
from fedsim.errors import RunFailedError

if TYPE_CHECKING:
    from fedsim.experiment.sweep.results import SweepResults
    from fedsim.experiment.sweep.variation import Variation

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "sweep",
        help="Run a scenario with many values of some keys.",
        description="Run a scenario once for each combination of some keys' values, several runs at a time. All of "
        "them share a store, so what two runs train alike is trained once. Print the comparison, and leave one table "
        "of all runs. The same sweep again, or a larger one, runs only what is missing.",
        allow_abbrev=False,
    )
    add_scenario(parser)
    parser.add_argument(
        "--vary",
        metavar="KEY.PATH=V1,V2",
        action="append",
        default=[],
        help="A key, as in --set, and its values: --vary network.cell.radio.profile=nb_iot_nb1,lte_m_m1. Several are "
        "combined. Without it, the scenario's section sweep says what is varied.",
    )
    parser.add_argument(
        "--out", metavar="DIR", type=place, help="The folder; without it, runs/, the scenario's name and -sweep."
    )
    add_overrides(parser)
    parser.add_argument(
        "--seeds", metavar="1,2,3", type=whole_numbers, help="Use these seeds instead of the scenario's."
    )
    parser.add_argument(
        "--no-training",
        action="store_true",
        help="Simulate time and traffic only: nothing is trained, and torch is not loaded.",
    )
    add_pool(parser)
    add_training(parser)
    parser.add_argument(
        "--quiet", action="store_true", help="Print the table on standard output, and nothing else but errors."
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.cli.tables import show_sweep
    from fedsim.experiment.sweep.sweep import sweep_variation

    overrides = list(arguments.overrides)
    if arguments.seeds is not None:
        overrides.append(f"seeds={arguments.seeds}")
    if arguments.no_training:
        overrides.append("learn=false")
    try:
        results = sweep_variation(
            arguments.scenario,
            _variation(arguments.vary),
            overrides=overrides,
            out=arguments.out,
            store=arguments.store,
            pool=arguments.pool,
            pool_size=arguments.pool_size,
            options=host_options(arguments),
            progress=not arguments.quiet,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {_go_on(arguments)}") from None
    except RunFailedError as error:
        raise RunFailedError(f"{error}\n{_go_on(arguments)}") from error
    except MemoryError as error:
        raise RunFailedError(f"the sweep failed (there is not enough memory for it); {_go_on(arguments)}") from error
    except OSError as error:  # the disk is full, or gone
        raise RunFailedError(f"the sweep failed ({reason(error)}); {_go_on(arguments)}") from error
    show_sweep(results)
    if not arguments.quiet:
        sys.stderr.writelines(f"Remark: {remark}\n" for remark in results.remarks)
        _show_places(results)
    return 0


def _go_on(arguments: argparse.Namespace) -> str:
    """With the same words, as no option may be lost: another store, say, would train all again."""
    return f"go on with: {shlex.join(['fedsim', *arguments.words])}"


def _variation(options: list[str]) -> Variation | None:
    from fedsim.experiment.sweep.variation import from_options

    return from_options(options) if options else None


def _show_places(results: SweepResults) -> None:
    from fedsim.experiment.sweep.folder import TABLE
    from fedsim.scenario.scalars import printable

    folder = printable(shlex.join([str(results.folder)]))
    sys.stderr.write(f"All rows: {printable(str(results.folder / TABLE))}\nDraw figures: fedsim plot {folder}\n")
