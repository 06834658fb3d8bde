"""``fedsim completion``: what makes a shell complete commands, options and files at the Tab key."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from fedsim.cli.arguments import Commands

__all__ = ["add_to"]

_SHELLS = {
    "bash": 'eval "$(fedsim completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(fedsim completion zsh)" in ~/.zshrc, after compinit',
    "fish": "fedsim completion fish | source in ~/.config/fish/config.fish",
}


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "completion",
        help="Print what makes a shell complete this command.",
        description="Print a script for a shell, which then completes commands, options and files. To have it in each "
        f"new shell, put a line into its start-up file: {'; '.join(_SHELLS.values())}.",
        allow_abbrev=False,
    )
    parser.add_argument("shell", metavar="SHELL", choices=tuple(_SHELLS), help=f"The shell: {', '.join(_SHELLS)}.")
    parser.set_defaults(execute=lambda arguments: _execute(arguments, commands))


def _execute(arguments: argparse.Namespace, commands: Commands) -> int:
    import shtab

    for command in commands.choices.values():
        for action in command._actions:
            if action.type is Path:
                kind = shtab.DIRECTORY if "DIR" in str(action.metavar) else shtab.FILE
                action.complete = kind  # type: ignore[attr-defined]  # where shtab looks for it
    sys.stdout.write(shtab.complete(arguments.parser, arguments.shell))
    return 0
