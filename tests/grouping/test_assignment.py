"""The cheapest clusters are the cheapest: against SciPy, against all partitions, and by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linear_sum_assignment
from tiers import drawn

from fedsim.grouping import equal_clusters
from fedsim.grouping.equal_clusters import cheapest_clusters, l2, squared

shapes = st.tuples(st.integers(1, 6), st.integers(1, 6)).map(lambda shape: (shape[0] * shape[1], shape[0]))
few, many = st.integers(-5, 5), st.integers(-(2**40), 2**40)


def total(costs, members):
    """What *members*, (clusters, size), cost; exact for whole numbers, as Python adds them."""
    return sum(costs[point, cluster].item() for cluster, row in enumerate(members) for point in row)


def best(costs):
    """The same by SciPy, on a square matrix that has each cluster's column as often as it has members."""
    points, clusters = costs.shape
    square = np.repeat(costs, points // clusters, axis=1)
    return sum(square[row, column].item() for row, column in zip(*linear_sum_assignment(square), strict=True))


def is_partition(members, points):
    return sorted(members.ravel().tolist()) == list(range(points))


def test_by_hand():
    """Everybody would rather be in cluster 0; who loses least goes to cluster 1."""
    costs = np.array([[0.0, 9.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    assert cheapest_clusters(costs).tolist() == [[0, 3], [1, 2]]
    assert cheapest_clusters(costs[:, ::-1]).tolist() == [[1, 2], [0, 3]]


def test_the_nearest_cluster_of_each_is_not_always_cheapest_in_turn():
    """Giving away one by one, point 0 first, costs 1 + 10; the cheapest is 2 + 2."""
    assert cheapest_clusters(np.array([[1.0, 2.0], [2.0, 10.0]])).tolist() == [[1], [0]]


@given(shapes.flatmap(lambda shape: arrays(np.int64, shape, elements=few | many)))
@drawn(150)
def test_whole_costs_are_exact_with_ties_and_without(costs):
    members = cheapest_clusters(costs.astype(np.float64))
    assert members.shape == (costs.shape[1], len(costs) // costs.shape[1])
    assert is_partition(members, len(costs))
    assert total(costs, members) == best(costs)


@given(shapes.flatmap(lambda shape: arrays(np.float64, shape, elements=st.floats(-1e18, 1e18))))
@drawn(150)
def test_other_costs_are_exact_up_to_the_rounding_that_is_documented(costs):
    points, clusters = costs.shape
    room = 2**60 / ((points + clusters + 1) * (clusters + 1))
    largest = (costs - costs.min(axis=1, keepdims=True)).max()
    sums = 1e-13 * np.abs(costs).max() * points  # of floating-point numbers, ours and SciPy's
    assert total(costs, cheapest_clusters(costs)) <= best(costs) + 2 * points * largest / room + sums


def test_costs_that_fill_the_solvers_room_are_exact_to_the_last_unit():
    """Among all 20 ways to make two clusters of three, in whole numbers of Python."""
    rng = np.random.default_rng(1)
    room = 2**60 // (9 * 3)
    for _ in range(50):
        base = rng.integers(0, 2**20, (6, 1))
        costs = base + rng.integers(0, 3, (6, 2)) + np.array([0, 2**52])  # all differ in the last digits only
        assert costs.max() < room
        ways = ([list(first), sorted(set(range(6)) - set(first))] for first in combinations(range(6), 3))
        assert total(costs, cheapest_clusters(costs.astype(np.float64))) == min(total(costs, way) for way in ways)


@pytest.mark.parametrize(("points", "clusters"), [(400, 2), (400, 200), (1000, 500), (3679, 13), (36799, 7)])
def test_the_solver_has_the_room_that_is_promised(points, clusters):
    """Costs that all want the same: the longest paths, the largest sums."""
    costs = np.outer(np.arange(points), np.arange(clusters)).astype(np.float64)
    members = cheapest_clusters(costs)
    assert members.tolist() == np.arange(points).reshape(clusters, -1)[::-1].tolist()


@pytest.mark.parametrize(("points", "doublings"), [(12, 54), (13, 53)])
def test_costs_are_as_large_as_there_is_room(points, doublings):
    """2^60 / ((12 + 3 + 1) (3 + 1)) is 2^54, and with a point more it is less."""
    costs = np.zeros((points, 3))
    costs[0, 1] = 1.0
    assert equal_clusters._whole(costs).max() == 2**doublings


def cheapest_chains(costs, members):
    """(clusters, clusters) least cost of moving a member from each to each, by way of others or not: Floyd-Warshall."""
    chains = np.array(
        [(costs[row] - costs[row, [cluster]][:, None]).min(axis=0) for cluster, row in enumerate(members)]
    )
    for through in range(len(chains)):
        chains = np.minimum(chains, chains[:, [through]] + chains[through])
    return chains


def test_of_many_clients_no_chain_of_moves_would_save_anything():
    """A flow is cheapest if and only if no cycle of its residual network has a negative cost: here in whole numbers."""
    points = np.random.default_rng(4).multinomial(50, np.full(62, 1 / 62), 36799).astype(np.float64)
    costs = squared(points, 5257 * points[:7], 5257).astype(np.int64)
    members = cheapest_clusters(costs.astype(np.float64))
    assert is_partition(members, 36799)
    assert (np.diag(cheapest_chains(costs, members)) == 0).all()
    members[0, 0], members[1, 0] = members[1, 0], members[0, 0]
    assert np.diag(cheapest_chains(costs, members)).min() < 0


@pytest.mark.parametrize("costs", [squared, l2])
def test_costs_of_class_counts_lead_to_the_cheapest_clusters_by_plain_distances(costs):
    rng = np.random.default_rng(2)
    points = rng.multinomial(50, rng.dirichlet(np.full(62, 0.3), 364)).astype(np.float64)
    sums = points.reshape(7, 52, 62).sum(axis=1)
    distances = np.linalg.norm(points[:, None] - sums / 52, axis=-1)
    plain = distances**2 / 2 if costs is squared else np.rint(1000 * distances)
    assert total(plain, cheapest_clusters(costs(points, sums, 52))) == pytest.approx(best(plain), rel=1e-12)
