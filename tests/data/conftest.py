from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from fedsim.data import cache, source


@pytest.fixture
def streams():
    """Named generators by seed, independent of each other and of the order in which they are asked for."""

    def of(seed: int):
        return lambda purpose: np.random.default_rng([seed, *hashlib.sha256(purpose.encode()).digest()])

    return of


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory, monkeypatch) -> Path:
    """A cache that is empty at first, and this test's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv(cache.VARIABLE, str(folder))
    return folder


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Where data sets are that do not come with a dependency; for tests that are marked ``data``."""
    return Path(os.environ[source.VARIABLE])
