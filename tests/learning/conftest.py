"""Benches whose files are closed when the test ends, and worker pools that end with it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from obedient import pool_of
from whole_numbers import Bench

from fedsim.learning.executors.workers import Workers


@pytest.fixture(scope="module", autouse=True)
def what_earlier_modules_made_is_set_aside() -> None:
    """Tests that collect garbage look at what is new: machine code is hundreds of thousands of objects."""
    gc.freeze()


@pytest.fixture
def open_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches: on the folder of the test, unless told otherwise."""
    with ExitStack() as stack:

        def make(folder: Path = tmp_path, **options: object) -> Bench:
            made = Bench(folder, **options)
            stack.callback(made.store.close)
            return made

        yield make


@pytest.fixture
def pool() -> Iterator[Workers]:
    made = pool_of(2)
    yield made
    made.close()
