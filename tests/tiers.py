"""What each tier of the tests tries: `make test` a part of it, `make test-long` all of it.

The tier is told by the profile of hypothesis, which a test run is given as ``--hypothesis-profile``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest
from hypothesis import settings

__all__ = ["FULL", "drawn", "examples", "mostly_long"]

FULL = settings.get_current_profile_name() == "long"
FEWEST = 5


def examples(number: int) -> int:
    """How many examples of *number* this tier draws: all, or a fifth, but not fewer than five."""
    return number if FULL else min(number, max(FEWEST, number // 5))


def drawn(number: int, **options: Any) -> Callable[[Any], Any]:
    """For a test that draws *number* examples in full and fewer in `make test`; *options* are those of `settings`."""

    def decorated(test: Any) -> Any:
        return pytest.mark.drawn(settings(max_examples=examples(number), deadline=None, **options)(test))

    return decorated


def mostly_long(values: Iterable[Any], *, now: Collection[Any]) -> list[Any]:
    """Parameters of a test of which only those in *now* are tried by `make test`, the others by `make test-long`."""
    values = list(values)
    assert all(value in values for value in now), f"{now} are to be tried, among {values}"
    long = pytest.mark.long
    return [
        pytest.param(*(value if isinstance(value, tuple) else [value]), marks=() if value in now else long)
        for value in values
    ]
