"""What a user can get wrong: errors that are shown as one message, never as a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["UserError", "nearest"]


class UserError(Exception):
    """The input is wrong: the message says where, what, the rule and the way out. Exit status 2."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """A helping hand for a misspelt *word*: ``"; did you mean 'fedavg'?"``, or ``""`` when nothing is near.

    >>> nearest("fedvag", ["fedavg", "fedprox"])
    "; did you mean 'fedavg'?"
    >>> nearest("zzz", ["fedavg"])
    ''
    """
    close = difflib.get_close_matches(word, list(choices), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
