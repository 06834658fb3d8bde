"""A genetic algorithm on choices of equal size, by pymoo (FedGS, section VII-A).

Parents win a tournament of three. Of the candidates in which two parents differ, each has half: children exchange a
stretch of these, between two cuts with as many of the one parent's as of the other's, so that they choose as many as
their parents did. The authors' public code drops children that do not; here there are none. In a mutation a
chosen candidate is replaced by one that is not.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.errors import Misfit
from fedsim.grouping.subset.selector import Matrix, Quadratic, SubsetSelector, subsets
from fedsim.settings import MOST, Count, Probability, key_rule

__all__ = ["Genetic"]


class Genetic(SubsetSelector):
    """A genetic algorithm whose children choose as many as their parents, by pymoo (FedGS)."""

    name: Literal["genetic"] = "genetic"
    population: Annotated[int, Interval(ge=2, le=MOST)] = 100
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
            raise Misfit("genetic needs the library pymoo; install it: pip install pymoo")
        if self.tournament > self.population:
            raise Misfit(f"tournament={self.tournament} must be at most population={self.population}")

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """The best of all generations."""
        from fedsim.grouping.subset.genetic_operators import evolved

        first = subsets(self.population, len(rows), size, rng)
        return np.flatnonzero(
            evolved(Quadratic.of(rows, target), first, self.generations, self.mutation, self.tournament, rng)
        )
