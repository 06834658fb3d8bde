"""What pymoo is told about choices of equal size: how to score, select, cross and mutate them.

The only module that imports pymoo, which need not be installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem
from pymoo.operators.selection.tournament import TournamentSelection
from pymoo.optimize import minimize

from fedsim.grouping.subset.genetic import Masks, crossed, mutated
from fedsim.grouping.subset.selector import Quadratic

if TYPE_CHECKING:
    from fedsim.grouping.subset.genetic import Genetic

__all__ = ["evolved"]


def evolved(settings: Genetic, quadratic: Quadratic, first: Masks, rng: np.random.Generator) -> Masks:
    """The best mask of all generations, of which *first* is the first."""
    algorithm = GA(
        pop_size=settings.population,
        sampling=first,
        selection=TournamentSelection(func_comp=_winners, pressure=settings.tournament),
        crossover=_BalancedCrossover(),
        mutation=_Replacement(settings.mutation),
        eliminate_duplicates=False,
    )
    seed = int(rng.integers(2**31))
    found = minimize(_Distances(quadratic), algorithm, ("n_gen", settings.generations), seed=seed)
    best: Masks = found.X.astype(np.bool_)
    return best


class _Distances(Problem):  # type: ignore[misc]
    def __init__(self, quadratic: Quadratic) -> None:
        super().__init__(n_var=len(quadratic.pull), n_obj=1, xl=0, xu=1, vtype=bool)
        self._quadratic = quadratic

    def _evaluate(self, masks: Masks, out: dict[str, Any], *_: Any, **__: Any) -> None:
        out["F"] = self._quadratic.values(masks)


def _winners(population: Any, contests: Any, **_: Any) -> Any:
    """The first of the best in each of *contests*, (contests, contestants) positions."""
    best = population.get("F")[:, 0][contests].argmin(axis=1)
    return np.take_along_axis(contests, best[:, None], axis=1)


class _BalancedCrossover(Crossover):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(n_parents=2, n_offsprings=2)

    def _do(self, _: Any, parents: Masks, *__: Any, random_state: np.random.Generator, **___: Any) -> Any:
        pairs = [crossed(one, other, random_state) for one, other in zip(*parents, strict=True)]
        return np.array(pairs).swapaxes(0, 1)


class _Replacement(Mutation):  # type: ignore[misc]
    def __init__(self, chance: float) -> None:
        super().__init__()
        self._chance = chance

    def _do(self, _: Any, masks: Masks, *__: Any, random_state: np.random.Generator, **___: Any) -> Any:
        return mutated(masks, self._chance, random_state)
