"""``fedsim list``: the names that a scenario may use, each with a sentence."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap

from fedsim import registry
from fedsim.cli.arguments import Commands
from fedsim.errors import UserError
from fedsim.units import si

__all__ = ["add_to"]

PROFILES = "profiles"  # values of a key rather than things with keys of their own, but as much looked for


def add_to(commands: Commands) -> None:
    """Add this command."""
    parser = commands.add_parser(
        "list",
        help="List the names that a scenario may use.",
        description="List what is registered, by kind, each with a sentence.",
        allow_abbrev=False,
    )
    parser.add_argument("kind", nargs="?", help=f"Only this kind: {', '.join(_kinds())}.")
    parser.set_defaults(execute=_execute)


def _execute(arguments: argparse.Namespace) -> int:
    kinds = _kinds() if arguments.kind is None else [arguments.kind]
    sys.stdout.write("\n".join(_section(kind) for kind in kinds))
    return 0


def _kinds() -> list[str]:
    kinds = list(registry.KINDS)
    kinds.insert(kinds.index("radios") + 1, PROFILES)
    return kinds


def _section(kind: str) -> str:
    sentences = _sentences(kind)
    width = max((len(name) for name, _ in sentences), default=0)
    lines = [_folded(f"  {name:{width}}  ", sentence) for name, sentence in sentences]
    return f"{kind}\n{''.join(lines)}"


def _sentences(kind: str) -> list[tuple[str, str]]:
    if kind != PROFILES:
        ours = ((name, registry.first_sentence(kind, name)) for name in registry.names(kind))
        return [*ours, *((name, _offered(kind, name)) for name in registry.offers(kind))]
    from fedsim.radio.fixed import profiles

    return [
        (name, f"{si(rates.uplink_bps, 'bit/s')} up, {si(rates.downlink_bps, 'bit/s')} down (radio fixed).")
        for name, rates in profiles().items()
    ]


def _offered(kind: str, name: str) -> str:
    """What an installed package offers, or why not."""
    if name in registry.names(kind):
        return f"Not used: {registry.origin(kind, name)} offers it, and fedsim's own of this name comes first."
    try:
        sentence = registry.first_sentence(kind, name)
    except UserError as error:
        sentence = str(error)
    return f"{sentence} (offered by {registry.origin(kind, name)})"


def _folded(head: str, sentence: str) -> str:
    """One line on a pipe; on a terminal as many as its width asks for, the sentence in a column of its own."""
    if not sys.stdout.isatty():
        return f"{head}{sentence}\n"
    lines = textwrap.wrap(
        sentence,
        shutil.get_terminal_size().columns,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) + "\n"
