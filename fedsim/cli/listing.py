"""``fedsim list``: the names that a scenario may use, each with a sentence."""

from __future__ import annotations

import argparse
import sys

from fedsim import registry
from fedsim.cli.arguments import Commands

__all__ = ["add_to"]


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "list",
        help="List the names that a scenario may use.",
        description="List what is registered, by kind, each with a sentence.",
        allow_abbrev=False,
    )
    parser.add_argument("kind", nargs="?", help=f"Only this kind: {', '.join(registry.KINDS)}.")
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    kinds = list(registry.KINDS) if arguments.kind is None else [arguments.kind]
    sys.stdout.write("\n".join(_section(kind) for kind in kinds))
    return 0


def _section(kind: str) -> str:
    names = registry.names(kind)
    width = max(map(len, names), default=0)
    lines = [f"  {name:{width}}  {registry.first_sentence(kind, name)}\n" for name in names]
    return f"{kind}\n{''.join(lines)}"
