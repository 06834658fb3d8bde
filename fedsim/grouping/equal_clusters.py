"""K-means with clusters of equal size (Bradley, Bennett and Demiriz, *Constrained K-Means Clustering*, 2000).

HFedMS, Eqs. 7-10: give each point to a cluster so that all clusters have S members and the costs add up to the least,
move each cluster's centre to the mean of its members, and again. Half the squared distances never add up to more than
before. First centres: k-means++ (Arthur and Vassilvitskii, 2007).

Centres are kept as S times the centre. For whole points that is the sum of the members: whole, so that costs are exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping.assignment import Clusters, cheapest_clusters

__all__ = ["alternated", "clusters", "l2", "seeds", "squared"]

Matrix = NDArray[np.float64]
Costs = Callable[[Matrix, Matrix, int], Matrix]
"""Of points (points, classes), `sums` (clusters, classes) and the size of a cluster: (points, clusters)."""


def clusters(
    points: Matrix, number: int, rng: np.random.Generator, costs: Costs, tolerance: float, iterations: int
) -> Clusters:
    """(number, size) positions of *points*, which there are a multiple of *number* of.

    Final once the squared moves of all centres add up to *tolerance* times the mean variance of a column at most, or
    after so many *iterations*.
    """
    size = len(points) // number
    points = points - np.rint(points.mean(axis=0))  # smaller numbers, the same distances
    sums = size * seeds(points, number, rng)
    still = tolerance * points.var(axis=0).mean() * size**2
    for _ in range(iterations):
        members, moved = alternated(points, sums, costs)
        if np.square(moved - sums).sum() <= still:
            break
        sums = moved
    return members


def alternated(points: Matrix, sums: Matrix, costs: Costs) -> tuple[Clusters, Matrix]:
    """Members and new *sums* after one assignment and one update."""
    members = cheapest_clusters(costs(points, sums, len(points) // len(sums)))
    return members, points[members].sum(axis=1)


def seeds(points: Matrix, number: int, rng: np.random.Generator) -> Matrix:
    """(number, classes) some of *points*: the next one's chance grows with the squared distance from the nearest.

    When all are at a distance of 0, each has the same chance.

    >>> seeds(np.array([[0.0], [0.0], [5.0]]), 2, np.random.default_rng(1)).ravel().tolist()
    [0.0, 5.0]
    """
    chosen = [int(rng.integers(len(points)))]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < number:
        nearest = np.minimum(nearest, np.square(points - points[chosen[-1]]).sum(axis=1))
        total = nearest.sum()
        chosen.append(int(rng.choice(len(points), p=nearest / total if total > 0 else None)))
    return points[chosen]


def squared(points: Matrix, sums: Matrix, size: int) -> Matrix:
    """(points, clusters) half the squared distance times *size*, less what every assignment pays: |V|^2 and |C|^2.

    1/2 |V - C|^2 = 1/2 |V|^2 + 1/2 |C|^2 - V C, and each point is given once, each centre *size* times.
    """
    return -(points @ sums.T)


def l2(points: Matrix, sums: Matrix, size: int) -> Matrix:
    """(points, clusters) 1000 times the distance, rounded, as in the authors' code."""
    lengths = np.square(points).sum(axis=1)[:, None] + np.square(sums).sum(axis=1) / size**2
    distances: Matrix = np.sqrt(np.maximum(lengths - 2 * (points @ sums.T) / size, 0.0))
    return np.rint(1000 * distances)
