"""Gradient-based Binary Permutation Client Selection: start well, then swap one for one as the gradient says.

Algorithm 2 and Eqs. 14-18 of FedGS (Li et al., IEEE Internet of Things Journal, 2022). With g = A'(A x - y):

1. Start with ones at the *size* largest entries of pinv(A) y (``mpinv``), or at random places (``random``), or with
   none (``zero``); there the zero with the smallest gradient becomes a one, until there are enough.
2. Swap the zero with the smallest gradient and the one with the largest.
3. Go on as long as |A x - y| gets smaller. The first swap that does not make it smaller is taken back, and ends it.

The gradient says what a swap changes to first order; the true change of 1/2 |A x - y|^2 is g_i - g_j + 1/2 |a_i -
a_j|^2. So the search may end where another swap would still help. While it starts from zero, the authors' public code
lets y grow with the number of ones; here y is what it is in the paper.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.grouping.subset.selector import Chosen, Matrix, SubsetSelector, checked

__all__ = ["GBPCS", "Start", "Trail", "gbp_cs"]

Start = Literal["mpinv", "zero", "random"]
CLEARLY_REGULAR = 1e-3
"""Smallest pivot of a Cholesky factor by the largest, from which on normal equations lose six digits at most."""
DIGITS = 1e9
"""Entries of pinv(A) y, or of a gradient, that agree to nine digits of the largest are equal, and the first one counts.

So rounding, which differs between processors, decides about no rank."""
SMALLER = 1 - 1e-12
"""Times a squared distance: what is not below that is not smaller, but for rounding."""


class Trail(NamedTuple):
    """What `gbp_cs` has chosen, and its way there."""

    chosen: Chosen
    distances: list[float]
    """|A x - y| at the start, and after each swap that made it smaller."""
    sums: list[Matrix]
    """A x at the same times."""
    warm_up: list[float]
    """|A x - y| with 0, 1, ... ones less than enough; only of the start ``zero``."""
    warm_up_sums: list[Matrix]
    """A x at the same times."""


class GBPCS(SubsetSelector):
    """Swaps by the gradient, from a good start, as long as each helps (FedGS, Algorithm 2)."""

    name: Literal["gbp_cs"] = "gbp_cs"
    start: Start = "mpinv"
    """Where the search begins: the largest entries of pinv(A) y, nothing and then one by one, or at random."""

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """Steps 1 to 3."""
        return _search(rows, target, size, self.start, rng).chosen


def gbp_cs(
    rows: ArrayLike, target: ArrayLike, size: int, start: Start = "mpinv", rng: np.random.Generator | None = None
) -> Trail:
    """Choose *size* of *rows*, (candidates, entries), so that they add up to about *target*, (entries,).

    For any real numbers: it is a heuristic for 0-1 least squares with a fixed count, min |A x - y|_2 with A = rows'.
    The start ``random`` takes an *rng*. Raises `ValueError` unless *size* is from 0 to the number of rows.

    >>> trail = gbp_cs([[4.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 2.0]], [1.5, 3.0], 2)
    >>> trail.chosen.tolist(), trail.distances
    ([2, 3], [0.0])
    """
    numbers, goal = checked(rows, target, size)
    if size > len(numbers):
        raise ValueError(f"size={size} must be at most {len(numbers)}, the number of rows")
    if start == "random" and rng is None:
        raise ValueError("start='random' needs an rng, such as numpy.random.default_rng(1)")
    return _search(numbers, goal, size, start, rng)


def _search(rows: Matrix, target: Matrix, size: int, start: Start, rng: np.random.Generator | None) -> Trail:
    taken = np.zeros(len(rows), dtype=np.bool_)
    warm_up: list[Matrix] = []
    if start == "mpinv":
        taken[_largest(_pinv_solution(rows, target), size)] = True
    elif rng is not None and start == "random":
        taken[rng.choice(len(rows), size, replace=False)] = True
    else:
        warm_up = _filled(rows, target, size, taken)
    sums, squares = _swapped(rows, target, taken)
    return Trail(
        np.flatnonzero(taken),
        [float(np.sqrt(square)) for square in squares],
        sums,
        [float(np.linalg.norm(total - target)) for total in warm_up],
        warm_up,
    )


def _swapped(rows: Matrix, target: Matrix, taken: NDArray[np.bool_]) -> tuple[list[Matrix], list[float]]:
    """Steps 2 and 3, in *taken*; the sums at the start and after each swap, and their squared distances."""
    total = rows[taken].sum(axis=0)
    off = total - target
    sums, squares = [total], [float(off @ off)]
    some_of_each = 0 < np.count_nonzero(taken) < len(taken)  # a swap changes neither number
    while some_of_each:
        gradient = _gradient(rows, off)
        new = int(np.where(taken, np.inf, gradient).argmin())
        old = int(np.where(taken, gradient, -np.inf).argmax())
        total = total + (rows[new] - rows[old])
        off = total - target
        square = float(off @ off)
        if not square < SMALLER * squares[-1]:
            break
        taken[new], taken[old] = True, False
        sums.append(total)
        squares.append(square)
    return sums, squares


def _filled(rows: Matrix, target: Matrix, size: int, taken: NDArray[np.bool_]) -> list[Matrix]:
    """The start ``zero``: ones in *taken*, each at the zero with the smallest gradient; the sums before each."""
    total = np.zeros_like(target)
    sums = []
    for _ in range(size):
        sums.append(total)
        new = int(np.where(taken, np.inf, _gradient(rows, total - target)).argmin())
        taken[new] = True
        total = total + rows[new]
    return sums


def _gradient(rows: Matrix, off: Matrix) -> Matrix:
    """g = A'(A x - y), but for a factor."""
    return _ranks(np.einsum("ij,j->i", rows, off))


def _largest(weights: Matrix, size: int) -> NDArray[np.int64]:
    """Positions of the *size* largest; of equal ones the first."""
    return np.argsort(-_ranks(weights), kind="stable")[:size]


def _ranks(numbers: Matrix) -> Matrix:
    """Whole numbers in the order of *numbers*."""
    top = np.abs(numbers).max(initial=0.0)
    return np.rint(DIGITS * (numbers / top)) if top > 0 else numbers


def _pinv_solution(rows: Matrix, target: Matrix) -> Matrix:
    """pinv(A) y: of all x that come nearest to A x = y, the shortest.

    Where A has clearly full rank, from the smaller of its two systems of normal equations, which is faster than from
    singular values.
    """
    tall = len(rows) <= len(target)
    gram: Matrix = rows @ rows.T if tall else rows.T @ rows
    if not _is_clearly_regular(gram):
        return np.asarray(np.linalg.lstsq(rows.T, target, rcond=None)[0], dtype=np.float64)
    if tall:
        return np.asarray(np.linalg.solve(gram, rows @ target), dtype=np.float64)
    return np.asarray(rows @ np.linalg.solve(gram, target), dtype=np.float64)


def _is_clearly_regular(gram: Matrix) -> bool:
    try:
        pivots = np.linalg.cholesky(gram).diagonal()
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.size and pivots.min() > CLEARLY_REGULAR * pivots.max())
