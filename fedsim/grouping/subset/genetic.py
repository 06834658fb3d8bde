"""A genetic algorithm on choices of equal size, by pymoo (FedGS, section VII-A).

Parents win a tournament of three. Of the candidates in which two parents differ, each has half: children exchange a
stretch of these, between two cuts with as many of the one parent's as of the other's, so that they choose as many as
their parents did. The paper drops children that do not; here there are none. In a mutation a chosen candidate is
replaced by one that is not.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedsim.errors import Misfit
from fedsim.grouping.subset.selector import Matrix, Quadratic, SubsetSelector, subsets
from fedsim.settings import Count, Probability, key_rule

__all__ = ["Genetic", "crossed", "mutated"]

Masks = NDArray[np.bool_]


class Genetic(SubsetSelector):
    """A genetic algorithm whose children choose as many as their parents, by pymoo (FedGS)."""

    name: Literal["genetic"] = "genetic"
    population: Count = Field(default=100, ge=2)
    """Choices in a generation; the first one is drawn."""
    generations: Count = 100
    """Generations, the first one included."""
    mutation: Probability = 0.001
    """The chance of a chosen candidate to be replaced."""
    tournament: Count = 3
    """Among how many the best is taken as a parent."""

    @key_rule
    def _has_its_library(self) -> None:
        if find_spec("pymoo") is None:
            raise Misfit("genetic needs the library pymoo; install it: pip install 'fedsim-industrial[selectors]'")
        if self.tournament > self.population:
            raise Misfit(f"tournament={self.tournament} must be at most population={self.population}")

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """The best of all generations."""
        from fedsim.grouping.subset.genetic_operators import evolved

        first = subsets(self.population, len(rows), size, rng)
        return np.flatnonzero(evolved(self, Quadratic.of(rows, target), first, rng))


def crossed(one: Masks, other: Masks, rng: np.random.Generator) -> tuple[Masks, Masks]:
    """Two children, each of which chooses as many as *one* and as *other* do.

    >>> one, other = np.array([True, False, True, False]), np.array([False, True, True, False])
    >>> [child.sum() for child in crossed(one, other, np.random.default_rng(1))]
    [np.int64(2), np.int64(2)]
    """
    differing = np.flatnonzero(one != other)
    ahead = np.concatenate([[0], np.cumsum(np.where(one[differing], 1, -1))])  # of one, in what is before each cut
    cut = int(rng.integers(len(ahead)))
    begin, end = sorted((cut, int(rng.choice(np.flatnonzero(ahead == ahead[cut])))))
    stretch = differing[begin:end]
    children = one.copy(), other.copy()
    children[0][stretch], children[1][stretch] = other[stretch], one[stretch]
    return children


def mutated(masks: Masks, chance: float, rng: np.random.Generator) -> Masks:
    """*masks* with each of their ones replaced with this *chance*, as long as there are others."""
    changed = masks.copy()
    leaving = masks & (rng.random(masks.shape) < chance)
    for row in np.flatnonzero(leaving.any(axis=1)):
        zeros = np.flatnonzero(~masks[row])
        ones = np.flatnonzero(leaving[row])[: len(zeros)]
        changed[row, ones] = False
        changed[row, rng.choice(zeros, len(ones), replace=False)] = True
    return changed
