"""How tests are run on mutants: drawn examples are always the same ones, nobody looks for the smallest, and a test that
computes for much longer than any does has seen the mutant. While mutmut finds out which functions a test reaches, the
tests of each file compute anew what the program keeps. How long a test takes is what it computes, whatever else runs.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import Phase, settings
from mutmut.configuration import config

LONGEST_S = 15.0
"""Of a processor's time, which does not depend on what else runs; tests that are chosen take less."""

settings.register_profile(
    "limited",
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)


def give_up(_: int, __: FrameType | None) -> None:
    """Fail, whatever was being computed; once more when that was caught."""
    pytest.fail(f"computes for more than {LONGEST_S:.0f} s")


def forget() -> None:
    """Empty the caches of the packages that are changed."""
    packages = tuple(pattern.removesuffix("/*").replace("/", ".") for pattern in config().only_mutate)
    for module in [module for name, module in sys.modules.items() if name.startswith(packages)]:
        for value in vars(module).values():
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()


def computed_s() -> float:
    """What processors have computed for this process, and for those it has waited for."""
    return sum(os.times()[:4])


_last_file: list[Path] = []
_took_s: list[float] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget between files."""
    if os.environ.get("MUTANT_UNDER_TEST") == "stats" and _last_file != [item.path]:
        _last_file[:] = [item.path]
        forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Set the alarm for each test, unless how long it takes is what is looked for."""
    if os.environ.get("MUTANT_UNDER_TEST") == "stats":
        return (yield)
    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S, LONGEST_S)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Note how long it computes."""
    before_s = computed_s()
    try:
        return (yield)
    finally:
        _took_s[:] = [computed_s() - before_s]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Let mutmut, which keeps how long a test took, keep that."""
    if call.when == "call" and _took_s:
        call.duration = _took_s.pop()
