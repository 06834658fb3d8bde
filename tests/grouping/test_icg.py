"""Inter-cluster grouping makes groups alike: by hand, in expectation as theory says, and between optimum and chance."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import fmean, stdev

import numpy as np
import pytest
from grouping.skewed import BATCH, kinds, skewed

from fedsim.grouping.icg import ICG
from fedsim.grouping.quality import compared, counts_of, objective
from fedsim.grouping.settings import RandomGroups


def z_of(grouping, counts, number, seed):
    return objective(counts_of(counts, grouping.groups(counts, number, np.random.default_rng(seed))))


def partitions(clients, size):
    """All ways to cut *clients* into groups of *size*, each once."""
    if not clients:
        yield []
        return
    first, *others = clients
    for mates in combinations(others, size - 1):
        rest = [client for client in others if client not in mates]
        for groups in partitions(rest, size):
            yield [np.array([first, *mates]), *groups]


def test_by_hand():
    """Two clients know only class 0, two only class 1: each of two groups gets one of each, and z is 0."""
    counts = np.array([[5, 0], [0, 5], [5, 0], [0, 5]])
    for seed in range(10):
        groups = ICG().groups(counts, 2, np.random.default_rng(seed))
        assert [sorted(client % 2 for client in group.tolist()) for group in groups] == [[0, 1], [0, 1]]
        assert objective(counts_of(counts, groups)) == 0


def test_each_group_has_one_client_of_each_clear_kind():
    """K = 30, M = 6: L = 5 and S = 6, nobody is left over; with two clients more, two are not sampled."""
    counts = np.concatenate([kinds(5, 6, 1), kinds(5, 1, 2)[:2]])
    groups = ICG().groups(counts[:30], 6, np.random.default_rng(1))
    assert [sorted(client % 5 for client in group.tolist()) for group in groups] == [[0, 1, 2, 3, 4]] * 6
    placed = np.concatenate(ICG().groups(counts, 6, np.random.default_rng(1)))
    assert len(placed) == 30


def test_the_number_of_clusters_is_the_length_of_a_group():
    """K = 14, M = 4: L = 3 and S = 4, so K - L S = 2 are idle. M = 5: L = 2 and S = 7, so S - M = 2 of each cluster."""
    counts = kinds(2, 7, 1)
    assert len(np.concatenate(ICG().groups(counts, 4, np.random.default_rng(1)))) == 12
    groups = ICG().groups(counts, 5, np.random.default_rng(1))
    assert [sorted(client % 2 for client in group.tolist()) for group in groups] == [[0, 1]] * 5


def test_members_train_in_an_order_that_each_group_draws_for_itself():
    """Kinds of 24 groups of 4: any of 24 orders; of 4 groups of 5, who has come in addition may stand anywhere."""
    counts = kinds(4, 25, 1)
    orders, doubled_last = [], 0
    for seed in range(20):
        groups = ICG(leftover="spread").groups(counts, 24, np.random.default_rng(seed))
        found = [(group % 4).tolist() for group in groups]
        orders += [tuple(order) for order in found if len(order) == 4]
        doubled_last += sum(order.count(order[-1]) == 2 for order in found if len(order) == 5)
    share = np.unique(orders, axis=0, return_counts=True)[1] / len(orders)
    assert len(orders) == 400
    assert np.abs(share - 1 / 24).max() < 4 * math.sqrt(1 / 24 * 23 / 24 / 400)
    assert len(share) == 24
    assert abs(doubled_last / 80 - 2 / 5) < 4 * math.sqrt(2 / 5 * 3 / 5 / 80)


def expected(pairs, variances, length):
    """The mean of z when a pair of groups differs by 2 x *variances* x (L / (L n)^2)."""
    return pairs * 2 * variances / (length * BATCH**2)


@pytest.mark.parametrize("number", [7, 8])  # with one member of each cluster left over, and without
def test_z_is_on_average_what_the_clusters_variances_say(number):
    """K = 32 of 4 clear kinds. Two groups differ by independent members of each cluster, without replacement:

    E z = M (M - 1) / 2 x 2 / (L n)^2 x S / (S - 1) x the sum of the clusters' variances (cf. Proposition 1 of HFedMS).
    Random groups draw from one cluster of all: E z = M (M - 1) / 2 x 2 / (L n^2) x K / (K - 1) x the variance of all.
    """
    counts, draws = kinds(4, 8, seed=3), 600
    pairs, length, size = number * (number - 1) / 2, 4, 8
    within = fmean(counts[kind::4].var(axis=0).sum() for kind in range(4)) * size / (size - 1)
    overall = counts.var(axis=0).sum() * 32 / 31
    for grouping, variances in ((ICG(), within), (RandomGroups(), overall)):
        zs = [z_of(grouping, counts, number, seed) for seed in range(draws)]
        off = fmean(zs) - expected(pairs, variances, length)
        assert abs(off) < 4 * stdev(zs) / math.sqrt(draws), (grouping.name, fmean(zs))
    assert within < overall / 20


@pytest.mark.parametrize(("clients", "number"), [(8, 2), (8, 4), (9, 3)])
def test_icg_lies_between_the_optimum_and_chance(clients, number):
    """Against all partitions: never below the best of them, and closer to it on average than they are."""
    best, by_icg, by_chance = [], [], []
    for seed in range(40):
        counts = skewed(clients, 4, seed)
        all_z = [objective(counts_of(counts, groups)) for groups in partitions(list(range(clients)), clients // number)]
        zs = [z_of(ICG(), counts, number, draw) for draw in range(5)]
        assert min(zs) >= min(all_z) * (1 - 1e-12)
        best.append(min(all_z))
        by_icg.append(fmean(zs))
        by_chance.append(fmean(all_z))
    gains = np.array(by_chance) - np.array(by_icg)
    assert gains.mean() > 3 * gains.std(ddof=1) / math.sqrt(len(gains))
    assert sum(best) < sum(by_icg) < sum(by_chance)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("grouping", [ICG(), ICG(cost="l2"), ICG(normalise=True), ICG(leftover="spread")], ids=repr)
def test_skewed_clients_are_grouped_better_than_at_random(grouping, seed):
    """Clients of 20 kinds or so: fewer clusters than kinds at M = 10, the other way round at M = 40."""
    counts = skewed(368, 20, seed, alpha=0.02)
    for number in (10, 40):
        groups = grouping.groups(counts, number, np.random.default_rng(seed))
        table = compared(counts, groups, np.random.default_rng(seed))
        for measure in ("z", "mean_cpd", "median_cpd"):
            values = [getattr(table[row], measure) for row in ("groups", "random groups", "clients")]
            assert values == sorted(values), (number, measure)
            assert values[0] < 0.9 * values[1]


def test_shares_count_and_not_sizes_when_asked():
    """With ten times the samples of each class a client has the same shares."""
    counts = skewed(60, 6, 1)
    times = np.random.default_rng(1).integers(1, 30, (60, 1))
    assert_same = {True: 0, False: 0}
    for normalise in assert_same:
        for seed in range(5):
            plain, larger = (
                ICG(normalise=normalise).groups(table, 10, np.random.default_rng(seed))
                for table in (counts, counts * times)
            )
            assert_same[normalise] += all(map(np.array_equal, plain, larger))
    assert assert_same == {True: 5, False: 0}


@pytest.mark.parametrize("normalise", [False, True])
def test_the_order_of_the_classes_changes_no_group(normalise):
    """Sums are exact: in whatever order they are added up, and so with any number of threads."""
    counts = skewed(200, 30, 1) * np.random.default_rng(1).integers(1, 4, (200, 1))
    grouping, order = ICG(normalise=normalise), np.random.default_rng(2).permutation(30)
    for seed in range(3):
        plain, turned = (
            grouping.groups(table, 24, np.random.default_rng(seed)) for table in (counts, counts[:, order])
        )
        assert all(map(np.array_equal, plain, turned))


def test_a_client_without_samples_finds_a_place():
    counts = kinds(3, 4, 1)
    counts[5] = 0
    for grouping in (ICG(), ICG(normalise=True)):
        groups = grouping.groups(counts, 4, np.random.default_rng(1))
        assert sorted(np.concatenate(groups).tolist()) == list(range(12))
    shares = ICG(normalise=True)._points(np.array([[1, 0], [0, 0], [1, 3]])) / 2**18
    assert shares.tolist() == [[1, 0], [0, 0], [0.25, 0.75]]


def test_the_costs_and_the_stop_rule_are_those_of_the_keys():
    counts = skewed(200, 10, 1)
    formed = {
        keys: np.concatenate(ICG.model_validate(dict(keys)).groups(counts, 20, np.random.default_rng(1))).tolist()
        for keys in (
            (),
            (("cost", "l2"),),
            (("iterations", 1),),
            (("tolerance", 1e18),),
            (("normalise", True),),
        )
    }
    assert formed[(("iterations", 1),)] == formed[(("tolerance", 1e18),)]
    assert len({tuple(groups) for groups in formed.values()}) >= 3
    assert formed[()] not in (formed[(("cost", "l2"),)], formed[(("iterations", 1),)])
