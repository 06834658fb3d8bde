"""What a user can get wrong, and what can go wrong outside: one message each, never a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

__all__ = ["Flaw", "Misfit", "Remark", "RunFailedError", "UserError", "in_short", "nearest", "some", "within"]

LONGEST = 100
"""Characters of what other libraries say."""
LONGEST_WORD = 200
MOST_COMPARED = 10_000
"""How many words `nearest` looks at, however many there are, and how long they may be: more would take seconds."""


class UserError(Exception):
    """The input is wrong: the message says where, what, the rule and the way out. Exit status 2."""


class Remark(UserWarning):
    """A warning: the scenario, or its results, may not mean what they seem to mean, though nothing in them is wrong."""


class Flaw(Exception):
    """What is wrong with something inside a file, in its *line* if that is known; its reader says where."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


class RunFailedError(Exception):
    """A run was ended from outside, with nothing wrong in it: the message says by what. Exit status 1."""


class Misfit(UserError, ValueError):
    """A `UserError` about one key of the settings at hand: *key* is the way there, ``("links", 2, "rate_bps")``.

    A `ValueError` too, so that settings may raise it while they are validated. The problem may begin with its key
    (``rate_bps=3 must be ...``, ``links[2]: ...``), for those who read it where nothing else names the key.
    """

    def __init__(self, problem: str, *key: str | int) -> None:
        super().__init__(problem, *key)
        self.problem = problem
        self.key = key

    def __str__(self) -> str:
        return self.problem


def in_short(error: BaseException) -> str:
    """What *error* says, on one line that is not long.

    >>> in_short(ValueError("bad header\\n  at 3"))
    'bad header at 3'
    """
    return " ".join(str(error).split())[:LONGEST]


def nearest(word: str, choices: Iterable[str]) -> str:
    """A helping hand for a misspelt *word*: ``"; did you mean 'fedavg'?"``, or ``""`` when nothing is near.

    A choice is near when it is the word and a part more or less, or when at most two letters differ (of longer words a
    third).

    >>> nearest("fedvag", ["fedavg", "fedprox"]), nearest("prox", ["fedavg", "fedprox"])
    ("; did you mean 'fedavg'?", "; did you mean 'fedprox'?")
    >>> nearest("fedopt", ["fedavg", "fedgsp"])
    ''
    """
    short = (choice for choice in islice(choices, MOST_COMPARED) if max(len(word), len(choice)) <= LONGEST_WORD)
    close = difflib.get_close_matches(word, list(short), n=1)
    return f"; did you mean {close[0]!r}?" if close and _is_near(word, close[0]) else ""


def _is_near(word: str, choice: str) -> bool:
    if word in choice or choice in word:
        return True
    edits = difflib.SequenceMatcher(None, word, choice, autojunk=False).get_opcodes()
    differing = sum(max(i2 - i1, j2 - j1) for kind, i1, i2, j1, j2 in edits if kind != "equal")
    return differing <= max(2, len(word) // 3)


def some(names: Sequence[str], most: int = 3) -> str:
    """The first of some *names*, and how many others there are.

    >>> some(["cam-1", "cam-2"]), some(["cam-1", "cam-2", "cam-3", "cam-4"], most=2)
    ("'cam-1', 'cam-2'", "'cam-1', 'cam-2' and 2 more")
    """
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


@contextmanager
def within(*key: str | int) -> Iterator[None]:
    """A block in which every `Misfit` is one about settings that stand under *key* in those at hand.

    >>> try:
    ...     with within("exchange"):
    ...         raise Misfit("needs labels", "scc", "quota")
    ... except Misfit as misfit:
    ...     print(misfit.key)
    ('exchange', 'scc', 'quota')
    """
    try:
        yield
    except Misfit as misfit:
        raise Misfit(misfit.problem, *key, *misfit.key) from None
