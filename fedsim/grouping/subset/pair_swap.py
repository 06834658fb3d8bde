"""Local search by the best swap: the exact change of every pair is looked at, from several starts side by side.

Ours, not the paper's. Where GBP-CS looks at one swap by the gradient, this takes the swap of a one and a zero that
makes 1/2 |A x - y|^2 smallest, g_i - g_j + 1/2 |a_i - a_j|^2, until there is none that makes it smaller. It starts from
what GBP-CS has found, so it is never worse, and from random choices. From where it ends it is kicked, three ones and
three zeros change places at random, and the search goes on from there; of the two ends the better one counts (iterated
local search: Lourenco, Martin and Stuetzle, 2003).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping.subset.gbp_cs import gbp_cs
from fedsim.grouping.subset.selector import Matrix, Quadratic, SubsetSelector, subsets
from fedsim.settings import NonNegativeInt

__all__ = ["PairSwap", "descended"]

KICKED = 3
"""Ones that become zeros in a kick."""
ROUNDING = 1e-12
"""By the largest numbers of A'A and A'y: a change that is smaller is none."""


class PairSwap(SubsetSelector):
    """The best of all swaps, again and again, from several random starts and from what GBP-CS finds."""

    name: Literal["pair_swap"] = "pair_swap"
    starts: NonNegativeInt = 20
    """Random choices to start from, beside the one that GBP-CS finds."""
    kicks: NonNegativeInt = 2
    """How often each start's best end is kicked, and the search goes on."""

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """The first of the ends with the smallest distance."""
        masks = np.zeros((1 + self.starts, len(rows)), dtype=np.bool_)
        masks[0, gbp_cs(rows, target, size).chosen] = True
        masks[1:] = subsets(self.starts, len(rows), size, rng)
        problem = Quadratic.of(rows, target)
        ends = descended(problem, masks)
        values = problem.values(ends)
        for _ in range(self.kicks):
            others = descended(problem, _kicked(ends, min(KICKED, size, len(rows) - size), rng))
            found = problem.values(others)
            better = found < values
            ends[better], values[better] = others[better], found[better]
        return np.flatnonzero(ends[values.argmin()])


def _kicked(masks: NDArray[np.bool_], changes: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """*masks* with so many ones, and as many zeros, changed in each row."""
    order = (rng.random(masks.shape) - masks).argsort(axis=1)  # ones in random order, then zeros
    ones = np.count_nonzero(masks[0])
    masks = masks.copy()
    np.put_along_axis(masks, order[:, :changes], False, axis=1)
    np.put_along_axis(masks, order[:, ones : ones + changes], True, axis=1)
    return masks


def descended(problem: Quadratic, masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where the rows of *masks*, (starts, candidates), come by best swaps; each has as many ones as before, and zeros.

    >>> descended(Quadratic.of(np.array([[5.0], [1.0], [2.0]]), np.array([2.0])), np.array([[True, False, False]]))
    array([[False, False,  True]])
    """
    gram, pull = problem
    masks, half = masks.copy(), gram.diagonal() / 2
    least = -ROUNDING * (np.abs(gram).max() + np.abs(pull).max())
    gradients = masks.astype(np.float64) @ gram - pull
    going = np.arange(len(masks))
    while len(going):
        taken, gradient = masks[going], gradients[going]
        enters = np.where(taken, np.inf, half + gradient)
        leaves = np.where(taken, half - gradient, np.inf)
        changes = (enters[:, :, None] + leaves[:, None, :] - gram).reshape(len(going), -1)
        best = changes.argmin(axis=1)
        helps = changes[np.arange(len(going)), best] < least
        going, (new, old) = going[helps], np.divmod(best[helps], len(gram))
        masks[going, new], masks[going, old] = True, False
        gradients[going] += gram[new] - gram[old]
    return masks
