"""Clients that hold some classes often and others hardly, and clients of a few clearly different kinds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BATCH = 50


def skewed(clients: int, classes: int, seed: int, alpha: float = 0.3) -> NDArray[np.int64]:
    """(clients, classes) counts that add up to `BATCH` each, from Dirichlet-distributed mixtures."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(BATCH, rng.dirichlet(np.full(classes, alpha), clients))


def kinds(number: int, each: int, seed: int) -> NDArray[np.int64]:
    """(number * each, number) counts: kind i holds 40 samples of class i, the other 10 at random; kinds in turn."""
    rng = np.random.default_rng(seed)
    noise = rng.multinomial(BATCH - 40, np.full(number, 1 / number), number * each)
    return noise + 40 * np.tile(np.eye(number, dtype=np.int64), (each, 1))
