"""Equal-size k-means: never worse, stops when it should, and begins as k-means++ does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from grouping.skewed import kinds, skewed

from fedsim.grouping import equal_clusters
from fedsim.grouping.equal_clusters import alternated, clusters, l2, seeds, squared


def within(points, members):
    """Half the squared distances from the centres, times 2 S: a whole number for whole points."""
    whole = points.astype(np.int64)
    return int(members.shape[1] * np.square(whole).sum() - np.square(whole[members].sum(axis=1)).sum())


@pytest.mark.parametrize("seed", range(5))
def test_no_alternation_makes_it_worse_until_one_changes_nothing(seed):
    points = skewed(120, 10, seed).astype(np.float64)
    sums = 20 * seeds(points, 6, np.random.default_rng(seed))
    history = []
    for _ in range(100):
        members, moved = alternated(points, sums, squared)
        history.append(within(points, members))
        if np.array_equal(moved, sums):
            break
        sums = moved
    assert history == sorted(history, reverse=True)
    assert history[0] > history[-1]
    assert len(history) < 100


def test_clear_kinds_are_found():
    points = kinds(4, 6, seed=1).astype(np.float64)
    for seed in range(5):
        found = clusters(points, 4, np.random.default_rng(seed), squared, 1e-4, 300)
        assert sorted((found % 4).tolist()) == [[kind] * 6 for kind in range(4)]


def counted(monkeypatch, points, tolerance, iterations):
    """How many assignments are made."""
    calls = []

    def watched(points, sums, costs):
        calls.append((sums, *alternated(points, sums, costs)))
        return calls[-1][1:]

    monkeypatch.setattr(equal_clusters, "alternated", watched)
    final = clusters(points, 5, np.random.default_rng(3), squared, tolerance, iterations)
    assert np.array_equal(final, calls[-1][1])
    return [float(np.square(after - before).sum()) for before, _, after in calls]


def test_it_stops_at_the_first_move_within_the_tolerance(monkeypatch):
    """Sum |C_new - C_old|^2 <= tolerance x mean variance, with centres of S = 40 members kept as sums."""
    points = skewed(200, 10, 1).astype(np.float64)
    still = points.var(axis=0).mean() * 40**2
    for tolerance in (0.0, 1e-4, 0.3, 1e9):
        moves = counted(monkeypatch, points, tolerance, 300)
        assert moves[-1] <= tolerance * still
        assert all(move > tolerance * still for move in moves[:-1])
    assert len(moves) == 1
    assert len(counted(monkeypatch, np.repeat(points[:, :1], 3, axis=1), 1e9, 300)) == 1, "columns vary, not rows"
    assert len(counted(monkeypatch, points, 0.0, 300)) > len(counted(monkeypatch, points, 0.3, 300)) > 1


def test_it_stops_after_so_many_iterations(monkeypatch):
    points = skewed(200, 10, 1).astype(np.float64)
    assert len(counted(monkeypatch, points, 0.0, 300)) > 3
    assert len(counted(monkeypatch, points, 0.0, 3)) == 3


def test_the_second_seed_is_as_likely_as_its_squared_distance_from_the_first():
    """Points 0, 1 and 3: after 0 the next is 3 with a chance of 9/10; after 1 4/5; after 3 it is 0 with 9/13."""
    rng, draws = np.random.default_rng(1), 6000
    drawn = [tuple(seeds(np.array([[0.0], [1.0], [3.0]]), 2, rng).ravel()) for _ in range(draws)]
    for pair, chance in {(0, 3): 9 / 10, (1, 3): 4 / 5, (3, 0): 9 / 13}.items():
        first = sum(one[0] == pair[0] for one in drawn)
        assert abs(first - draws / 3) < 4 * math.sqrt(draws * 2 / 9)
        assert abs(drawn.count(pair) - chance * first) < 4 * math.sqrt(first * chance * (1 - chance))


def test_seeds_are_different_points_as_long_as_there_are_some():
    points = np.repeat(np.arange(4.0), 5)[:, None]
    for seed in range(20):
        assert sorted(seeds(points, 4, np.random.default_rng(seed)).ravel()) == [0, 1, 2, 3]
        assert sorted(seeds(points[:6], 2, np.random.default_rng(seed)).ravel()) == [0, 1]
    assert seeds(np.ones((6, 2)), 3, np.random.default_rng(1)).tolist() == [[1, 1]] * 3


def test_the_two_costs_disagree_where_a_point_is_far_off_to_the_side():
    """Of (0.6, 0) and (0.7, 10) the second has more to gain from (1, 0) by squares, the first by plain distance."""
    points, sums = np.array([[0.6, 0.0], [0.7, 10.0]]), np.array([[0.0, 0.0], [1.0, 0.0]])
    assert alternated(points, sums, squared)[0].tolist() == [[0], [1]]
    assert alternated(points, sums, l2)[0].tolist() == [[1], [0]]


def test_the_codes_cost_is_a_thousand_distances_in_whole_numbers():
    points, sums = np.array([[3.0, 4.0], [1.0, 1.0]]), np.array([[0.0, 0.0], [6.0, 6.0]])
    assert l2(points, sums, 2).tolist() == [[5000, 1000], [1414, 2828]]  # 1000 sqrt(2) = 1414.2, 2000 sqrt(2) = 2828.4
