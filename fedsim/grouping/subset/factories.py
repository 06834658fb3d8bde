"""Made-up factories on which selectors are compared: 35 devices, of which two are set and eight more are chosen.

The distribution of all data is like FEMNIST's, as far as the writers' 60,757 images of `docs/data/femnist.md` go: 70.7
% digits, 14.9 % capital and 14.4 % small letters. Within each of these, classes are equally frequent here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.data.distances import mixtures
from fedsim.grouping.subset.selector import Matrix, divergence

__all__ = ["KINDS", "PRIOR", "Factory", "factories"]

PRIOR: Matrix = np.repeat([0.707 / 10, 0.149 / 26, 0.144 / 26], [10, 26, 26])
"""P_real: the share of each of FEMNIST's 62 classes."""
DEVICES, SET, SIZE, BATCH, CLASSES_OF_A_DEVICE, CONCENTRATION = 35, 2, 8, 32, 20, 30


class Factory(NamedTuple):
    """The next mini-batches of a factory's devices."""

    counts: NDArray[np.int64]
    """(candidates, classes) of those among whom to choose."""
    ready: NDArray[np.int64]
    """b, (classes,), the sum of those that are set."""
    size: int
    """How many to choose."""
    target: Matrix
    """y = n L P_real - b."""

    def divergence(self, chosen: ArrayLike) -> float:
        """Of all mini-batches of a step from P_real, with those of the *chosen*."""
        return divergence(self.ready + self.counts[np.asarray(chosen)].sum(axis=0), PRIOR)


def _alike(devices: int, rng: np.random.Generator) -> Matrix:
    return np.broadcast_to(PRIOR, (devices, len(PRIOR)))


def _dirichlet(devices: int, rng: np.random.Generator) -> Matrix:
    drawn: Matrix = rng.dirichlet(CONCENTRATION * PRIOR, devices)
    return drawn


def _twenty_classes(devices: int, rng: np.random.Generator) -> Matrix:
    held = rng.random((devices, len(PRIOR))).argsort(axis=1) < CLASSES_OF_A_DEVICE
    return mixtures(held * PRIOR)


KINDS: dict[str, Callable[[int, np.random.Generator], Matrix]] = {
    "alike": _alike,
    "dirichlet": _dirichlet,
    "twenty_classes": _twenty_classes,
}
"""How the devices of a factory differ: not at all; a little; in the classes that they hold."""


def factories(kind: str, number: int, rng: np.random.Generator, devices: int = DEVICES) -> Iterator[Factory]:
    """*number* factories of a *kind* of `KINDS`, one after the other.

    >>> factory = next(factories("alike", 1, np.random.default_rng(1)))
    >>> factory.counts.shape, factory.ready.sum(), round(factory.target.sum()), factory.size
    ((33, 62), np.int64(64), 256, 8)
    """
    for _ in range(number):
        counts = rng.multinomial(BATCH, KINDS[kind](devices, rng))
        ready = counts[:SET].sum(axis=0)
        yield Factory(counts[SET:], ready, SIZE, BATCH * (SET + SIZE) * PRIOR - ready)
