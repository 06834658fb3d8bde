"""What every way to choose devices has in common: FedGS's problem, and how good a choice is.

FedGS (Li et al., *Data Heterogeneity-Robust Federated Learning via Group Client Selection in Industrial IoT*, IEEE
Internet of Things Journal, 2022), Eqs. 6-13. A factory trains on the next mini-batches of L of its devices. Some of
them are set; b is the sum of their class counts. Choose the others, so that the sum of all is as near as can be to n L
P_real, the class counts of n L samples of all data. With the counts of the candidates as columns of A:

    minimise |A x - y|_2, y = n L P_real - b, x in {0, 1}, x_1 + ... + x_K = size.

That is a 0-1 least-squares problem with a fixed count, and NP-hard in general.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsim.data.distances import mixtures
from fedsim.settings import Component

__all__ = ["Chosen", "Matrix", "Quadratic", "SubsetSelector", "checked", "distance", "divergence", "subsets"]

AT_ONCE = 2**11
"""Choices whose numbers stay in the processor's cache."""
Matrix = NDArray[np.float64]
Chosen = NDArray[np.int64]
"""Positions of candidates, ascending and without repetition."""


class SubsetSelector(Component):
    """Base of what is registered under "subsets"."""

    needs_counts: ClassVar[bool] = True
    """Whether devices have to report how many samples of each class their next mini-batch holds."""

    def choose(self, counts: ArrayLike, target: ArrayLike, size: int, rng: np.random.Generator) -> Chosen:
        """The *size* rows of *counts* whose sum is near *target*; all rows, if there are no more than that.

        *counts* are (candidates, classes) and *target* (classes,); without ``needs_counts`` only the number of
        candidates matters. Raises `ValueError` for a negative size, and for numbers that are not finite or do not fit
        each other.
        """
        rows, goal = checked(counts, target, size) if self.needs_counts else (np.asarray(counts), np.asarray(target))
        if size < 0:
            raise ValueError(f"size={size} must not be negative")
        if size == 0 or size >= len(rows):
            return np.arange(min(size, len(rows)), dtype=np.int64)
        return np.sort(self.some(rows, goal, size, rng)).astype(np.int64, copy=False)

    def check(self, candidates: int, size: int) -> None:
        """Raise `UserError` where it cannot choose *size* of so many *candidates*."""
        return

    @abstractmethod
    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """Positions of *size* different rows, in any order; there are more of them than *size*, which is at least 1."""


def checked(counts: ArrayLike, target: ArrayLike, size: int) -> tuple[Matrix, Matrix]:
    """*counts* and *target* as floating-point numbers. Raises `ValueError` where they state no problem."""
    rows, goal = np.asarray(counts, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if size < 0:
        raise ValueError(f"size={size} must not be negative")
    if rows.ndim != 2 or goal.shape != rows.shape[1:]:
        raise ValueError(f"counts {rows.shape} and target {goal.shape} must be (candidates, classes) and (classes,)")
    if not (np.isfinite(rows).all() and np.isfinite(goal).all()):
        raise ValueError("counts and target must be finite")
    return rows, goal


class Quadratic(NamedTuple):
    """|A x - y|^2 = x' G x - 2 p' x + |y|^2: all that matters about the candidates, whatever the number of classes."""

    gram: Matrix
    """G = A'A, (candidates, candidates)."""
    pull: Matrix
    """p = A'y, (candidates,)."""

    @classmethod
    def of(cls, rows: Matrix, target: Matrix) -> Quadratic:
        """That of the problem with *rows* as columns of A."""
        return cls(rows @ rows.T, rows @ target)

    def values(self, masks: NDArray[Any]) -> Matrix:
        """(choices,) squared distances less |y|^2, of the rows of *masks*, (choices, candidates) zeros and ones.

        >>> problem = Quadratic.of(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 2.0]))
        >>> problem.values(np.array([[True, True], [True, False]])) + 5
        array([0., 4.])
        """
        found = np.empty(len(masks))
        for first in range(0, len(masks), AT_ONCE):
            ones = masks[first : first + AT_ONCE].astype(np.float64)
            found[first : first + AT_ONCE] = np.einsum("ij,ij->i", ones @ self.gram - 2 * self.pull, ones)
        return found


def subsets(number: int, candidates: int, size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(number, candidates) random choices of *size*, each as likely as any other."""
    order = rng.random((number, candidates)).argpartition(size - 1, axis=1)[:, :size]
    masks = np.zeros((number, candidates), dtype=np.bool_)
    np.put_along_axis(masks, order, True, axis=1)
    return masks


def distance(counts: ArrayLike, target: ArrayLike, chosen: ArrayLike) -> float:
    """|A x - y|_2: how far the sum of the *chosen* rows of *counts* is from *target*.

    >>> distance([[3, 0], [0, 4], [9, 9]], [0, 0], [0, 1])
    5.0
    """
    total = np.asarray(counts)[np.asarray(chosen, dtype=np.int64)].sum(axis=0)
    return float(np.linalg.norm(total - np.asarray(target)))


def divergence(counts: ArrayLike, distribution: ArrayLike) -> float:
    """How far the class mixture of *counts*, (classes,), is from a *distribution*: |norm(counts) - P|_2 (Eq. 6).

    Raises `ValueError` where there is no sample.

    >>> round(divergence([3, 1], [0.5, 0.5]), 4)
    0.3536
    """
    return float(np.linalg.norm(mixtures(np.asarray(counts)) - np.asarray(distribution)))
