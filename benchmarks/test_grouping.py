"""Grouping: inter-cluster grouping as the number of clients grows, and its assignment by other means.

Read it as ratios within one group, and down the numbers of clients. Groups of seven mean seven clusters. Ten
alternations are what HFedMS counts with, 100 ms for 368 clients in 52 groups; a run stops when its clusters are final.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
from pytest_benchmark.fixture import BenchmarkFixture
from scipy.optimize import linear_sum_assignment

from fedsim.grouping.equal_clusters import alternated, cheapest_clusters, seeds, squared
from fedsim.grouping.icg import ICG
from fedsim.grouping.quality import compared

LENGTH, CLASSES, BATCH, ALTERNATIONS = 7, 62, 50, 10
CLIENTS = (368, 3_680, 36_800)


def class_counts(clients: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(1)
    return rng.multinomial(BATCH, rng.dirichlet(np.full(CLASSES, 0.3), clients))


# Ten alternations of equal-size k-means


@pytest.mark.benchmark(group=f"{ALTERNATIONS} alternations, groups of {LENGTH}")
@pytest.mark.parametrize("clients", CLIENTS)
def test_alternations(benchmark: BenchmarkFixture, clients: int) -> None:
    size = clients // LENGTH
    points = class_counts(clients)[: LENGTH * size].astype(np.float64)

    def alternate() -> int:
        sums = size * seeds(points, LENGTH, np.random.default_rng(1))
        for _ in range(ALTERNATIONS):
            members, sums = alternated(points, sums, squared)
        return members.size

    assert benchmark(alternate) == LENGTH * size


@pytest.mark.benchmark(group=f"groups of {LENGTH}, until clusters are final")
@pytest.mark.parametrize("clients", CLIENTS)
def test_groups(benchmark: BenchmarkFixture, clients: int) -> None:
    counts, number = class_counts(clients), clients // LENGTH
    form = benchmark.pedantic if clients == max(CLIENTS) else benchmark
    groups = form(lambda: ICG().groups(counts, number, np.random.default_rng(1)))
    assert len(groups) == number


# One assignment


def by_arcs_one_by_one(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    network, (points, clusters) = SimpleMinCostFlow(), costs.shape
    whole = np.rint(costs).astype(int).tolist()
    for point in range(points):
        network.set_node_supply(point, 1)
        for cluster in range(clusters):
            network.add_arc_with_capacity_and_unit_cost(point, points + cluster, 1, whole[point][cluster])
    for cluster in range(clusters):
        network.set_node_supply(points + cluster, -points // clusters)
    assert network.solve() == network.OPTIMAL
    taken: list[list[int]] = [[] for _ in range(clusters)]
    for arc in range(network.num_arcs()):
        if network.flow(arc):
            taken[network.head(arc) - points].append(network.tail(arc))
    return np.array(taken)


def by_scipy(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    points, clusters = costs.shape
    columns = linear_sum_assignment(np.repeat(costs, points // clusters, axis=1))[1]
    return np.argsort(columns, kind="stable").reshape(clusters, -1)


@pytest.mark.benchmark(group="one assignment of 364 clients to 7 clusters")
@pytest.mark.parametrize("solve", [cheapest_clusters, by_arcs_one_by_one, by_scipy])
def test_assignment(benchmark: BenchmarkFixture, solve: Callable[[NDArray[np.float64]], NDArray[np.int64]]) -> None:
    points = class_counts(364).astype(np.float64)
    costs = squared(points, 52 * seeds(points, LENGTH, np.random.default_rng(1)), 52)
    members = benchmark(solve, costs)
    paid, least = (costs[each, np.arange(LENGTH)[:, None]].sum() for each in (members, by_scipy(costs)))
    assert paid == least


# How alike groups are


@pytest.mark.benchmark(group="compare 52 groups, random groups and 368 clients")
def test_comparison(benchmark: BenchmarkFixture) -> None:
    counts = class_counts(368)
    groups = ICG().groups(counts, 52, np.random.default_rng(1))
    table = benchmark(lambda: compared(counts, groups, np.random.default_rng(1)))
    assert table["groups"].z < table["random groups"].z
