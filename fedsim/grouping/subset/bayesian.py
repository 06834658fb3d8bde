"""Bayesian optimisation: a Gaussian process guesses the distance, and the most promising choice is tried next.

FedGS (section VII-A) tries 5 random choices and 25 more. Its public code has a variable for each place, and each place
has candidates of its own: the first of eight places one of the first eighth, and so on. So no choice takes two
candidates of one eighth, and the best choice is mostly among those that are left out: ``slots: disjoint``. With
``slots: any`` all choices are allowed.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping.subset.selector import Matrix, Quadratic, SubsetSelector, subsets
from fedsim.settings import Count, NonNegativeInt

if TYPE_CHECKING:
    from sklearn.gaussian_process import GaussianProcessRegressor

__all__ = ["Bayesian", "disjoint"]

PROMISING = 1000
"""Random choices, of which the most promising one is tried."""
NOISE = 1e-6
"""Variance of the values, by theirs."""


class Bayesian(SubsetSelector):
    """Bayesian optimisation: tries what a Gaussian process expects most of (FedGS)."""

    name: Literal["bayesian"] = "bayesian"
    initial: Count = 5
    """Random choices that are tried first."""
    iterations: NonNegativeInt = 25
    """Choices that are tried then, one after the other."""
    slots: Literal["disjoint", "any"] = "disjoint"
    """Whether each place has its own part of the candidates, as in the authors' public code, or takes any of them."""

    def some(self, rows: Matrix, target: Matrix, size: int, rng: np.random.Generator) -> NDArray[np.integer[Any]]:
        """The first of the best that were tried."""
        problem = Quadratic.of(rows, target)
        tried = self._drawn(self.initial, len(rows), size, rng)
        values = self._distances(problem, tried, target)
        for _ in range(self.iterations):
            drawn = self._drawn(PROMISING, len(rows), size, rng)
            process = _fitted(self._points(tried), values)
            hopes = _expected_improvement(process, self._points(drawn), values.min())
            tried = np.concatenate([tried, drawn[[hopes.argmax()]]])
            values = np.append(values, self._distances(problem, tried[-1:], target))
        return np.flatnonzero(tried[values.argmin()])

    def _drawn(self, number: int, candidates: int, size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        draw = disjoint if self.slots == "disjoint" else subsets
        return draw(number, candidates, size, rng)

    def _points(self, masks: NDArray[np.bool_]) -> Matrix:
        """What the process sees of *masks*: for each place where its candidate stands, from 0 to 1, or the masks."""
        if self.slots == "any":
            return masks.astype(np.float64)
        places: Matrix = np.nonzero(masks)[1].reshape(len(masks), -1) / masks.shape[1]
        return places

    def _distances(self, problem: Quadratic, masks: NDArray[np.bool_], target: Matrix) -> Matrix:
        distances: Matrix = np.sqrt(np.maximum(problem.values(masks) + target @ target, 0.0))
        return distances


def disjoint(number: int, candidates: int, size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(number, candidates) random choices of one candidate from each of *size* parts, which differ by one at most.

    >>> disjoint(1, 3, 2, np.random.default_rng(1)).tolist()
    [[True, True, False]]
    """
    cuts = np.arange(size + 1) * candidates // size
    masks = np.zeros((number, candidates), dtype=np.bool_)
    np.put_along_axis(masks, rng.integers(cuts[:-1], cuts[1:], (number, size)), True, axis=1)
    return masks


def _fitted(points: Matrix, values: Matrix) -> GaussianProcessRegressor:
    """The process with the length scale that makes *values* likeliest."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import Matern

    process = GaussianProcessRegressor(Matern(nu=2.5), alpha=NOISE, normalize_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the length scale may be at one of its bounds
        return process.fit(points, values)


def _expected_improvement(process: GaussianProcessRegressor, points: Matrix, least: float) -> Matrix:
    """E max(0, least - value) of each of *points*."""
    from scipy.special import ndtr

    mean, deviation = process.predict(points, return_std=True)
    deviation = np.maximum(deviation, np.finfo(np.float64).tiny)
    sigmas = np.clip((least - mean) / deviation, -30.0, 30.0)
    hopes: Matrix = deviation * (sigmas * ndtr(sigmas) + np.exp(-(sigmas**2) / 2) / math.sqrt(2 * math.pi))
    return hopes
