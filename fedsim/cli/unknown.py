"""Words on the command line that no command and no option is called by, and what is written instead."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path

from fedsim.errors import nearest
from fedsim.registry import alike
from fedsim.scenario.scalars import message_line

__all__ = ["unknown_command", "unknown_word"]

_LIST_OPTIONS = ("--seeds", "--only")
"""Their items have commas between them."""


def unknown_command(word: str, commands: Collection[str]) -> str:
    """The message for a *word* that is none of the *commands*."""
    known = alike("commands").get(word.lower())
    if known:
        hand = f"; write {known.write}"
    elif Path(word).suffix in (".yaml", ".yml"):
        hand = f"; write fedsim run {shlex.quote(word)}"
    else:
        hand = nearest(word.lower(), commands)
    return message_line(f"there is no command {word!r}{hand} (commands: {', '.join(commands)})")


def unknown_word(command: str, words: Sequence[str], unknown: Sequence[str], options: Collection[str]) -> str:
    """The message for the first of the *words* after a *command* that are *unknown* to it; it has these *options*."""
    way_out = _way_out(command, words, unknown, options)
    return message_line(f"`fedsim {command}` takes no {unknown[0]!r}{way_out}")


def _way_out(command: str, words: Sequence[str], unknown: Sequence[str], options: Collection[str]) -> str:
    if not unknown[0].startswith("-"):
        return _in_one_word(words, unknown, options)
    option, _, value = unknown[0].partition("=")
    after = next((after for word, after in pairwise(words) if word == unknown[0]), "-")
    given = value or ("VALUE" if after.startswith("-") else after)
    known = alike("options").get(option)
    if known and (known.write.partition(" ")[0] in options or not known.write.startswith("--")):
        return f"; write {known.write.replace('COMMAND', command).replace('VALUE', shlex.quote(given))}"
    bare = nearest(option.lstrip("-"), [name.lstrip("-") for name in options])  # two dashes make nothing alike
    return bare.replace("'", "'--", 1)


def _in_one_word(words: Sequence[str], unknown: Sequence[str], options: Collection[str]) -> str:
    """The way out where a value was written in several words: ``--set seeds = 3``, ``--seeds 1 2``."""
    place = next((place for place in range(2, len(words)) if words[place] == unknown[0]), 0)
    option, first = (words[place - 2], words[place - 1]) if place else ("", "")
    rest = [word for word in unknown if not word.startswith("-")]
    if option == "--set" and option in options:
        return _set_in_one_word(first, rest)
    if option in _LIST_OPTIONS and option in options:
        return f"; write {option} {shlex.quote(','.join([first.rstrip(','), *rest]))}"
    return ""


def _set_in_one_word(first: str, rest: Sequence[str]) -> str:
    """The way out where the *rest* of an assignment, or another one, follows its *first* word."""
    key, _, begun = first.partition("=")
    if begun and "=" in rest[0]:
        return f"; write --set {shlex.quote(rest[0])}"
    value = " ".join([begun, *rest]).lstrip("=: ")
    key = key.rstrip(": ")
    return f"; write --set {shlex.quote(f'{key}={value}')}" if key and value else ""
