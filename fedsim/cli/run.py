"""``fedsim run``: run a scenario, watch it, see what came out."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from fedsim.cli.arguments import (
    Commands,
    add_overrides,
    add_scenario,
    add_training,
    host_options,
    place,
    reason,
    whole_numbers,
)
from fedsim.errors import RunFailedError, UserError, nearest

if TYPE_CHECKING:
    from fedsim.protocols.protocol import Protocol
    from fedsim.scenario.schema import Scenario

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "run",
        help="Run a scenario and compare its protocols.",
        description="Run every protocol of a scenario on every seed, print the comparison, and leave tables in a run "
        "folder. A finished run is not run again: its results are printed from the folder.",
        allow_abbrev=False,
    )
    add_scenario(parser)
    parser.add_argument(
        "--out", metavar="DIR", type=place, help="The run folder; without it, runs/ and the scenario's name."
    )
    add_overrides(parser)
    parser.add_argument(
        "--only",
        metavar="PROTOCOL",
        action="append",
        default=[],
        help="Run only this protocol, by its label or name; several with commas between them, or several times.",
    )
    parser.add_argument(
        "--seeds", metavar="1,2,3", type=whole_numbers, help="Use these seeds instead of the scenario's."
    )
    parser.add_argument(
        "--no-training",
        action="store_true",
        help="Simulate time and traffic only: nothing is trained, and torch is not loaded.",
    )
    parser.add_argument("--resume", action="store_true", help="Go on with a run that was interrupted.")
    add_training(parser)
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="Print tables on standard output, errors on standard error, and nothing else: no progress, remarks, "
        "warnings or paths.",
    )
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    from fedsim.cli.progress import progress
    from fedsim.cli.tables import show_comparison, show_paper_table
    from fedsim.experiment.run import run_with
    from fedsim.scenario.scalars import printable

    scenario = _scenario(arguments)
    try:
        with progress(quiet=arguments.quiet) as display:
            results = run_with(
                host_options(arguments),
                scenario,
                out=arguments.out,
                store=arguments.store,
                resume=arguments.resume,
                observer=display,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; go on with: {_command_to_resume(arguments)}") from None
    except RunFailedError as error:
        raise _failed(str(error), arguments) from error
    except MemoryError as error:
        raise _failed("there is not enough memory for it", arguments) from error
    except OSError as error:  # the disk is full, or gone
        raise _failed(reason(error), arguments) from error
    show_comparison([results], quiet=arguments.quiet)
    if scenario.paper_table is not None:
        show_paper_table(scenario.paper_table, results)
    if not arguments.quiet:
        sys.stdout.flush()
        folder = printable(shlex.join([str(results.folder)]))
        nothing_new = "" if display.saw_a_run else " (it was there already: nothing was run)"
        sys.stderr.write(f"Results: {folder}{nothing_new}\nDraw figures: fedsim plot {folder}\n")
    return 0


def _scenario(arguments: argparse.Namespace) -> Scenario:
    from fedsim.scenario.load import load

    overrides = list(arguments.overrides)
    if arguments.seeds is not None:
        overrides.append(f"seeds={arguments.seeds}")
    if arguments.no_training:
        overrides.append("learn=false")
    scenario = load(arguments.scenario, overrides=overrides)
    if not arguments.only:
        return scenario
    chosen = [protocol for text in arguments.only for protocol in _called(text, scenario.protocols)]
    return scenario.model_copy(update={"protocols": tuple(p for p in scenario.protocols if p in chosen)})


def _called(text: str, protocols: tuple[Protocol, ...]) -> list[Protocol]:
    """The protocols that *text* names: one title (which may hold commas), or titles and names with commas between."""
    titles = {protocol.title: protocol for protocol in protocols}
    if text in titles:
        return [titles[text]]
    found: list[Protocol] = []
    for word in map(str.strip, text.split(",")):
        called = [titles[word]] if word in titles else [protocol for protocol in protocols if protocol.name == word]
        if not called:
            known = ", ".join(map(repr, titles))
            raise UserError(
                f"--only: the scenario has no protocol {word!r}{nearest(word, titles)} (protocols: {known})"
            )
        found += called
    return found


def _failed(said: str, arguments: argparse.Namespace) -> RunFailedError:
    return RunFailedError(f"the run failed ({said}); go on with: {_command_to_resume(arguments)}")


def _command_to_resume(arguments: argparse.Namespace) -> str:

    words: list[str] = arguments.words
    return shlex.join(["fedsim", *words, *([] if "--resume" in words else ["--resume"])])
