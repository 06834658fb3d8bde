"""Which of several points are worth having: the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["pareto_front"]


def pareto_front(points: ArrayLike, larger_is_better: Sequence[bool]) -> NDArray[np.bool_]:
    """Whether each point is on the front: no other point dominates it.

    *points* is an array of shape (points, objectives), and *larger_is_better* says the direction of each objective. One
    point dominates another if it is at least as good in all objectives and better in one. So points that are equal in
    all objectives do not dominate each other: all of them are on the front, or none. A point with a NaN is never on the
    front and dominates no other. Infinite values are compared as such.

    The values are taken as they are. Where they are means over seeds, the front is one of means: it does not tell
    whether two points that lie close to each other really differ.

    Raises `ValueError` where the shape does not fit. Source: V. Pareto's optimum, as in K. Miettinen, *Nonlinear
    Multiobjective Optimization* (1999), definition 2.2.1.

    >>> pareto_front([(0.9, 60.0), (0.8, 20.0), (0.8, 30.0)], (True, False)).tolist()  # accuracy, seconds
    [True, True, False]
    """
    costs = np.array(points, dtype=float)
    if costs.shape == (0,):
        return np.zeros(0, dtype=bool)
    if costs.ndim != 2 or costs.shape[1] != len(larger_is_better) or not len(larger_is_better):
        raise ValueError(f"points of shape {costs.shape} do not have {len(larger_is_better)} objectives each")
    costs *= np.where(larger_is_better, -1.0, 1.0)
    front: NDArray[np.bool_] = ~np.isnan(costs).any(axis=1)
    others = costs[front]
    for place in np.flatnonzero(front):
        no_worse = (others <= costs[place]).all(axis=1)
        better = (others < costs[place]).any(axis=1)
        front[place] = not (no_worse & better).any()
    return front
