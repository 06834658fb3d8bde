"""What pymoo is told about choices of equal size: how to score, select, cross and mutate them.

The only module that imports pymoo, which need not be installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.crossover import Crossover
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem
from pymoo.operators.selection.tournament import TournamentSelection
from pymoo.optimize import minimize

from fedsim.grouping.subset.selector import Quadratic

__all__ = ["crossed", "evolved", "mutated"]

Masks = NDArray[np.bool_]
"""(choices, candidates), or (candidates,)."""


def evolved(
    quadratic: Quadratic, first: Masks, generations: int, mutation: float, tournament: int, rng: np.random.Generator
) -> Masks:
    """The best mask of so many *generations*, of which *first* is the first."""
    algorithm = GA(
        pop_size=len(first),
        sampling=first,
        selection=TournamentSelection(func_comp=_winners, pressure=tournament),
        crossover=_BalancedCrossover(),
        mutation=_Replacement(mutation),
        eliminate_duplicates=False,
    )
    seed = int(rng.integers(2**31))
    found = minimize(_Distances(quadratic), algorithm, ("n_gen", generations), seed=seed)
    best: Masks = found.X.astype(np.bool_)
    return best


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


class _Distances(Problem):  # type: ignore[misc]  # pymoo has no types
    def __init__(self, quadratic: Quadratic) -> None:
        super().__init__(n_var=len(quadratic.pull), n_obj=1, xl=0, xu=1, vtype=bool)
        self._quadratic = quadratic

    def _evaluate(self, masks: Masks, out: dict[str, Any], *_: Any, **__: Any) -> None:
        out["F"] = self._quadratic.values(masks)


def _winners(population: Any, contests: Any, **_: Any) -> Any:
    """The first of the best in each of *contests*, (contests, contestants) positions."""
    best = population.get("F")[:, 0][contests].argmin(axis=1)
    return np.take_along_axis(contests, best[:, None], axis=1)


class _BalancedCrossover(Crossover):  # type: ignore[misc]  # pymoo has no types
    def __init__(self) -> None:
        super().__init__(n_parents=2, n_offsprings=2)

    def _do(self, _: Any, parents: Masks, *__: Any, random_state: np.random.Generator, **___: Any) -> Any:
        pairs = [crossed(one, other, random_state) for one, other in zip(*parents, strict=True)]
        return np.array(pairs).swapaxes(0, 1)


class _Replacement(Mutation):  # type: ignore[misc]  # pymoo has no types
    def __init__(self, chance: float) -> None:
        super().__init__()
        self._chance = chance

    def _do(self, _: Any, masks: Masks, *__: Any, random_state: np.random.Generator, **___: Any) -> Any:
        return mutated(masks, self._chance, random_state)
