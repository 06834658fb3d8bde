from __future__ import annotations

import hashlib

import numpy as np
import pytest


@pytest.fixture
def streams():
    """Named generators by seed, independent of each other and of the order in which they are asked for."""

    def of(seed: int):
        return lambda purpose: np.random.default_rng([seed, *hashlib.sha256(purpose.encode()).digest()])

    return of
