"""The cheapest clusters of equal size, exactly: a minimum-cost flow, solved by OR-Tools.

One unit flows from each point to a cluster, and each cluster takes as many. All capacities are whole, so some cheapest
flow is whole too: each point in one cluster (HFedMS, Eqs. 7-10).

OR-Tools takes whole costs. What a point costs in its cheapest cluster is paid anyway and is taken off; the rest is
multiplied by the largest power of 2 that the solver has room for, and rounded. With L clusters of S members, room is
for numbers up to 2^60 / ((L S + L + 1) (L + 1)): more than 2^41 for 36,799 points and 7 clusters. Whole costs up to
there stay exact, and any other is off by no more than the largest one divided by that number.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clusters", "cheapest_clusters"]

Clusters = NDArray[np.int64]
"""(clusters, size) positions of the members, ascending in each row."""


def cheapest_clusters(costs: NDArray[np.float64]) -> Clusters:
    """Clusters of equal size whose *costs*, (points, clusters), add up to the least.

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
    """*costs* as whole numbers, in a unit that is a power of 2.

    The solver multiplies by the number of nodes + 1, and what it adds up along a path visits each cluster once.
    """
    points, clusters = costs.shape
    most = 2**60 / ((points + clusters + 1) * (clusters + 1))
    above = costs - costs.min(axis=1, keepdims=True)
    largest = above.max()
    doublings = math.floor(math.log2(most) - math.log2(largest)) if largest > 0 else 0
    whole: NDArray[np.float64] = np.rint(np.ldexp(above, doublings))
    return whole.astype(np.int64)
