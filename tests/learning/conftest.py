"""Benches whose files are closed when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from whole_numbers import Bench


@pytest.fixture
def open_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes benches: on the folder of the test, unless told otherwise."""
    with ExitStack() as stack:

        def make(folder: Path = tmp_path, **options: object) -> Bench:
            made = Bench(folder, **options)
            stack.callback(made.store.close)
            return made

        yield make
