"""How much data is looked at by commands that are to answer in seconds; a run reads all of it.

Each reader says, with one of the functions here, how much it is about to read, before it does so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from fedsim.errors import UserError

__all__ = ["MOST_BYTES", "MOST_SAMPLES", "check_bytes", "check_samples", "check_work", "in_seconds"]

MOST_SAMPLES = 1_500_000
"""However small each of them is."""
MOST_BYTES = 200_000_000
"""Of samples as they are stored."""

_in_seconds: ContextVar[bool] = ContextVar("in_seconds", default=False)


@contextmanager
def in_seconds(answer: bool = True) -> Iterator[None]:
    """Inside, and if an *answer* is wanted in seconds, a source that takes longer to read is refused by its number."""
    before = _in_seconds.set(answer)
    try:
        yield
    finally:
        _in_seconds.reset(before)


def check_samples(number: float, where: str) -> None:
    """Raise `UserError` where *number* samples are too many for an answer in seconds; *where* begins the message."""
    check_work(number, MOST_SAMPLES, "samples", where)


def check_bytes(number: float, where: str) -> None:
    """Raise `UserError` where *number* bytes of stored samples are too many for an answer in seconds."""
    check_work(number / 1e6, MOST_BYTES / 1e6, "MB of samples", where)


def check_work(number: float, most: float, unit: str, where: str) -> None:
    """Raise `UserError` where *number* of some *unit* is more than the *most* that can be read in seconds."""
    if _in_seconds.get() and number > most:
        raise UserError(
            f"{where}: has {math.ceil(number):,} {unit}, and at most {most:,.0f} are looked at, which takes seconds; "
            "give --all-data to look at everything, or start the run, which always does"
        )
