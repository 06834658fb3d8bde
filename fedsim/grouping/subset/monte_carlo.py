"""The best of many random choices (FedGS, section VII-A: 1,000 draws)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping.subset.selector import Matrix, Quadratic, SubsetSelector, subsets
from fedsim.settings import Count

__all__ = ["MonteCarlo"]

NUMBERS_AT_ONCE = 2**20


class MonteCarlo(SubsetSelector):
    """The best of many random choices (FedGS)."""

    name: Literal["monte_carlo"] = "monte_carlo"
    draws: Count = 1000
    """How many choices are drawn."""

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """The first of the draws with the smallest distance; memory does not grow with their number."""
        problem = Quadratic.of(rows, target)
        least, best = np.inf, np.empty(0, np.bool_)
        at_once = max(1, NUMBERS_AT_ONCE // len(rows))
        for first in range(0, self.draws, at_once):
            masks = subsets(min(at_once, self.draws - first), len(rows), size, rng)
            values = problem.values(masks)
            found = int(values.argmin())
            if values[found] < least:
                least, best = float(values[found]), masks[found]
        return np.flatnonzero(best)
