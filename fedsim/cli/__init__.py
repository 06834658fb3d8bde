"""The command ``fedsim``: each sub-command is one file, which loads its libraries when it is executed.

Exit status: 0 done (also when nobody reads the output to its end), 1 failed (the disk or the memory is full, a worker
was killed; or a bug: with a traceback), 2 the input is wrong, 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence

from fedsim.cli import (
    advise,
    compare,
    completion,
    describe,
    draw,
    explain,
    export,
    listing,
    new,
    plot,
    report,
    retime,
    run,
    schema,
    sweep,
    trace,
    validate,
)
from fedsim.cli.arguments import reason
from fedsim.cli.unknown import unknown_command, unknown_word
from fedsim.errors import RunFailedError, UserError

__all__ = ["main"]

_COMMANDS = (
    *(new, run, sweep, retime, advise),
    *(compare, explain, plot, report, trace, export),
    *(draw, describe, validate, schema, listing, completion),
)
_EPILOG = "Exit status: 0 done, 1 failed, 2 the input is wrong, 130 interrupted. `fedsim COMMAND --help` says more."


def main(argv: Sequence[str] | None = None) -> int:
    """Execute one command and return its exit status.

    *argv* is without the program's name; None takes the process's own. What a user got wrong becomes one message on
    standard error; anything else that goes wrong is a bug, and travels on.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what it has no letters for is written as an escape
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _execute(words)
        sys.stdout.flush()
    except UserError as error:
        return _ended(2, str(error))
    except RunFailedError as error:
        return _ended(1, str(error))
    except MemoryError:
        return _ended(1, "there is not enough memory for this")
    except KeyboardInterrupt as interrupt:
        return _ended(130, str(interrupt) or "interrupted")
    except BrokenPipeError:  # whoever read the output has seen enough: `fedsim list | head`
        _let_go_of_output()
        return 0
    except OSError as error:
        _let_go_of_output()
        return _ended(1, reason(error))
    return status


def _ended(status: int, message: str) -> int:
    sys.stderr.write(f"fedsim: {_shown(message)}\n")
    return status


def _let_go_of_output() -> None:
    """Let what standard output cannot take go nowhere, or Python would complain of it at its end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shown(message: str) -> str:
    """A message that cannot tell a terminal what to do, whatever it quotes."""
    from fedsim.scenario.scalars import printable

    return "\n".join(map(printable, message.split("\n")))


def _execute(words: list[str]) -> int:
    parser, commands = _parser()
    if not words:
        parser.print_help(sys.stderr)
        return 2
    command = next((word for word in words if not word.startswith("-")), None)
    if command is not None and command not in commands:
        raise UserError(unknown_command(command, commands))
    try:
        arguments, unknown = parser.parse_known_args(words)
    except SystemExit as end:  # argparse has said what it has to say
        return int(end.code or 0)
    if unknown:
        options = re.findall(r"--[a-z-]+", commands[arguments.command].format_help())
        raise UserError(unknown_word(arguments.command, words, unknown, options))
    arguments.words, arguments.parser = words, parser
    status: int = arguments.execute(arguments)
    return status


def _parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog="fedsim",
        description="What does this federated-learning protocol cost and yield on this industrial network?",
        epilog=_EPILOG,
        allow_abbrev=False,
        formatter_class=_Columns,
    )
    parser.add_argument("--version", action=_Version, help="Print the version and stop.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add_to(commands)
    return parser, commands.choices


class _Columns(argparse.HelpFormatter):
    """Has room for the longest command beside its sentence: argparse forgets that commands are indented once more."""

    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        self._action_max_length += self._indent_increment * isinstance(action, argparse._SubParsersAction)


class _Version(argparse.Action):
    """Looks the version up when it is asked for, not with every command."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        import fedsim

        sys.stdout.write(f"fedsim {fedsim.__version__}\n")
        parser.exit()
