"""How alike groups are: by hand, and closed forms against loops over pairs."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import fmean, median

import numpy as np
import pytest
from grouping.skewed import skewed

from fedsim.data.distances import cpd, mixtures
from fedsim.grouping.quality import compared, counts_of, objective, quality

COUNTS = np.array([[4, 0], [0, 8], [1, 1], [3, 1]])
"""Mixtures (1, 0), (0, 1), (1/2, 1/2), (3/4, 1/4)."""


def test_by_hand():
    """Pairs: 2, 1/2, 1/8, 1/2, 2 (3/4)^2 = 9/8, 1/8; sorted 1/8, 1/8, 1/2, 1/2, 9/8, 2."""
    found, scale = quality(COUNTS), 1 - math.exp(-1)
    assert (found.parts, found.z) == (4, 35 / 8)
    assert found.mean_cpd == pytest.approx(scale * 35 / 48, rel=1e-15)
    assert found.median_cpd == pytest.approx(scale / 2, rel=1e-15)


def test_groups_hold_what_their_members_hold():
    assert counts_of(COUNTS, [np.array([0, 1]), np.array([3])]).tolist() == [[4, 8], [3, 1]]


@pytest.mark.parametrize("groups", [2, 3, 40])
def test_closed_forms_are_sums_over_pairs(groups):
    counts = skewed(groups, 7, groups)
    shares = mixtures(counts)
    pairs = [float(cpd(p, q)) for p, q in combinations(shares, 2)]
    found = quality(counts)
    assert found.z == pytest.approx(sum(np.square(p - q).sum() for p, q in combinations(shares, 2)), rel=1e-12)
    assert (found.mean_cpd, found.median_cpd) == pytest.approx((fmean(pairs), median(pairs)), rel=1e-12)


def test_what_is_alike_is_at_no_distance_and_one_group_has_no_pair():
    alike = quality(np.array([[1, 3], [2, 6], [10, 30]]))
    assert (alike.z, alike.mean_cpd, alike.median_cpd) == (0, 0, 0)
    alone = quality(np.array([[1, 3]]))
    assert alone.z == 0
    assert math.isnan(alone.mean_cpd)
    assert math.isnan(alone.median_cpd)


def test_a_group_without_samples_is_at_no_distance_at_all():
    with pytest.raises(ValueError, match="have something in it"):
        objective(np.array([[1, 3], [0, 0]]))


def test_groups_are_compared_with_clients_and_with_random_groups_of_their_sizes():
    counts = skewed(20, 5, 1)
    groups = [np.array([0, 1, 2]), np.array([7, 8]), np.array([9])]
    table = compared(counts, groups, np.random.default_rng(1))
    assert list(table) == ["clients", "random groups", "groups"]
    assert table["clients"] == quality(counts)
    assert table["groups"] == quality(counts_of(counts, groups))
    order = np.random.default_rng(1).permutation([0, 1, 2, 7, 8, 9])
    assert table["random groups"] == quality(counts_of(counts, [order[:3], order[3:5], order[5:]]))
