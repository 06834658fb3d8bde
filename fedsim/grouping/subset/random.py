"""Devices at random, whatever they hold: what FedGS compares with, and what its public code began with."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping.subset.selector import Matrix, SubsetSelector

__all__ = ["RandomSubset"]


class RandomSubset(SubsetSelector):
    """Devices at random, each choice as likely as any other."""

    needs_counts: ClassVar[bool] = False

    name: Literal["random"] = "random"

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """One draw."""
        return rng.choice(len(rows), size, replace=False)
