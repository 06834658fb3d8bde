"""K-means with clusters of equal size (Bradley, Bennett and Demiriz, *Constrained K-Means Clustering*, 2000).

HFedMS, Eqs. 7-10: give each point to a cluster so that all clusters have S members and the costs add up to the least,
move each cluster's centre to the mean of its members, and again. Half the squared distances never add up to more than
before. First centres: k-means++ (Arthur and Vassilvitskii, 2007).

Centres are kept as S times the centre. For whole points that is the sum of the members: whole, so that costs are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clusters", "alternated", "cheapest_clusters", "clusters", "l2", "seeds", "squared"]

Matrix = NDArray[np.float64]
Clusters = NDArray[np.int64]
"""(clusters, size) positions of the members, ascending in each row."""
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


def cheapest_clusters(costs: NDArray[np.float64]) -> Clusters:
    """Clusters of equal size whose *costs*, (points, clusters), add up to the least: exactly, by OR-Tools.

    It is a minimum-cost flow. One unit flows from each point to a cluster, and each cluster takes as many. All
    capacities are whole, so some cheapest flow is whole too: each point in one cluster (HFedMS, Eqs. 7-10).

    >>> cheapest_clusters(np.array([[0.0, 9.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])).tolist()
    [[0, 3], [1, 2]]
    """
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    points, clusters = costs.shape
    network = SimpleMinCostFlow()
    arcs = network.add_arcs_with_capacity_and_unit_cost(
        np.repeat(np.arange(points, dtype=np.int32), clusters),
        np.tile(np.arange(points, points + clusters, dtype=np.int32), points),
        np.ones(costs.size, np.int64),
        _whole(costs).ravel(),
    )
    supplies = np.repeat([1, -(points // clusters)], [points, clusters])
    network.set_nodes_supplies(np.arange(points + clusters, dtype=np.int32), supplies)
    status = network.solve()
    if status != network.OPTIMAL:
        raise RuntimeError(f"OR-Tools found no cheapest clusters for {points} points and {clusters} clusters: {status}")
    cluster_of = network.flows(arcs).reshape(costs.shape).argmax(axis=1)
    members: Clusters = np.argsort(cluster_of, kind="stable").reshape(clusters, -1)
    return members


def _whole(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """*costs* as whole numbers, which OR-Tools takes, in a unit that is a power of 2.

    What a point costs in its cheapest cluster is paid anyway and is taken off; the rest is multiplied by the largest
    power of 2 that the solver has room for, and rounded. It multiplies by the number of nodes + 1, and what it adds up
    along a path visits each cluster once. So with L clusters of S members, room is for numbers up to
    2^60 / ((L S + L + 1) (L + 1)): more than 2^41 for 36,799 points and 7 clusters. Whole costs up to there stay exact,
    and any other is off by no more than the largest one divided by that number.
    """
    points, clusters = costs.shape
    most = 2**60 / ((points + clusters + 1) * (clusters + 1))
    above = costs - costs.min(axis=1, keepdims=True)
    largest = above.max()
    doublings = math.floor(math.log2(most) - math.log2(largest)) if largest > 0 else 0
    whole: NDArray[np.float64] = np.rint(np.ldexp(above, doublings))
    return whole.astype(np.int64)
