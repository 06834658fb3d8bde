from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from cwru_recordings import RECORDINGS, arrays, counts

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


@pytest.fixture
def packed(tmp_path: Path):
    """A function that writes some recordings of bearings in the packed form, with changes."""

    def written(**changes):
        np.savez_compressed(tmp_path / "cwru.npz", **{**arrays(), **changes})
        return tmp_path / "cwru.npz"

    return written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Recordings of bearings in MATLAB files, under both kinds of names.

    One holds the signal of another one too, as 99.mat of the source does.
    """
    place = tmp_path / "mat"
    place.mkdir()
    for number, samples in RECORDINGS:
        signal = counts(number, samples)[:, None] * 2.0**-12
        variables = {f"X{number:03d}_DE_time": signal, f"X{number:03d}RPM": np.array([[1797]])}
        if number < 3000:
            variables[f"X{number:03d}_FE_time"] = signal
        if number == 106:
            variables["X105_DE_time"] = 0 * signal
        name = f"{number}.mat" if number < 110 else f"12k_Drive_End_X_0_{number}.mat"
        scipy.io.savemat(place / name, variables, do_compression=number == 144)
    (place / "readme.txt").write_text("bearings")
    return place
