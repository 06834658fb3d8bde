"""The best choice is the best: against all choices; and how near to it GBP-CS and best swaps come."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from ortools.sat.python import cp_model
from tiers import drawn, examples

from fedsim.errors import UserError
from fedsim.grouping.subset import cp_sat
from fedsim.grouping.subset import exact as module
from fedsim.grouping.subset.cp_sat import CPSAT, solved
from fedsim.grouping.subset.exact import Exact
from fedsim.grouping.subset.factories import KINDS, factories
from fedsim.grouping.subset.gbp_cs import GBPCS
from fedsim.grouping.subset.monte_carlo import MonteCarlo
from fedsim.grouping.subset.pair_swap import PairSwap, descended
from fedsim.grouping.subset.selector import Quadratic, distance, subsets

each_kind = pytest.mark.parametrize("kind", KINDS)


def best(counts, target, size):
    """The smallest distance of all choices, one by one."""
    return min(distance(counts, target, list(choice)) for choice in combinations(range(len(counts)), size))


def found_by(selector, counts, target, size, seed=1):
    return distance(counts, target, selector.choose(counts, target, size, np.random.default_rng(seed)))


# -- exact ------------------------------------------------------------------------------------------------------------

whole, reals = st.integers(0, 5).map(float), st.floats(-100, 100, allow_subnormal=False)
problems = st.tuples(st.integers(2, 9), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, shape, elements=whole | reals), arrays(np.float64, shape[1], elements=whole | reals)
    )
)


@given(problem=problems, data=st.data())
@drawn(150)
def test_the_best_of_all_choices_is_found(problem, data):
    rows, target = problem
    size = data.draw(st.integers(1, len(rows) - 1))
    assert found_by(Exact(), rows, target, size) == pytest.approx(best(rows, target, size), abs=1e-6)


@pytest.mark.parametrize("block", [(1, 1), (3, 2), (4, 100)])
def test_it_does_not_matter_how_choices_are_cut_into_blocks(monkeypatch, block):
    monkeypatch.setattr(module, "BLOCK", block)
    for seed in range(5):
        factory = next(factories("twenty_classes", 1, np.random.default_rng(seed)))
        counts, target = factory.counts[:11], factory.target / 2
        assert found_by(Exact(), counts, target, 4) == best(counts, target, 4)


@pytest.mark.parametrize("seed", range(5))
def test_numbers_that_32_bits_cannot_tell_apart_are_told_apart(seed):
    """Counts near 100,000 whose squared sums differ in the eleventh digit: in whole numbers of Python."""
    rng = np.random.default_rng(seed)
    counts = 100_000 + rng.integers(0, 40, (13, 3))
    target = 5 * 100_020 + rng.integers(-30, 30, 3)

    def squared(picked):
        return sum((sum(int(counts[i, f]) for i in picked) - int(target[f])) ** 2 for f in range(3))

    picked = Exact().choose(counts, target, 5, np.random.default_rng(1))
    assert squared(picked.tolist()) == min(map(squared, combinations(range(13), 5)))


@pytest.mark.parametrize("seed", range(5))
def test_whatever_32_bits_say_what_is_better_by_a_little_is_found(seed, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", (2, 100) if seed % 2 else (512, 512))
    rng, everything = np.random.default_rng(seed), slice(None)
    rows = 100_000.0 + rng.integers(0, 40, (13, 3))
    for half in module.halves(Quadratic.of(rows, 500_100.0 + rng.integers(-30, 30, 3)), 5):
        least = half.values(everything, everything).min()
        *_, (here, there, value) = half.better_than(least + 0.5)
        assert value == half.values(everything, everything)[here, there] == least
        assert list(half.better_than(least)) == []


@each_kind
def test_products_of_32_bits_are_as_near_as_they_have_to_be(kind):
    factory = next(factories(kind, 1, np.random.default_rng(1)))
    everything = slice(None)
    for half in module.halves(Quadratic.of(factory.counts[:16].astype(float), factory.target), 10):
        values = half.values(everything, everything)
        narrow = half.first @ half.right(everything).T + half.of_first[:, None].astype(np.float32)
        assert np.abs(narrow - values).max() <= half.off()
        rounding, ones = (16 + 6) * 2.0**-24, np.count_nonzero(half.first[0, :-1])
        terms = (ones * (10 - ones) * half.crossing, half.of_first, half.of_second)
        most = sum(np.abs(term).max() for term in terms)
        assert half.off() == pytest.approx(rounding / (1 - rounding) * most, rel=1e-12)
        assert half.off() < 1


def test_all_choices_are_among_the_pairs_and_their_values_are_right():
    rng = np.random.default_rng(1)
    rows, target = rng.normal(size=(9, 3)), rng.normal(size=3)
    for size in range(1, 9):
        seen, everything = {}, slice(None)
        for half in module.halves(Quadratic.of(rows, target), size):
            values = half.values(everything, everything) + target @ target
            for (i, k), value in np.ndenumerate(values):
                picked = np.flatnonzero(np.concatenate([half.first[i, :-1], half.second[k, :-1]]))
                seen[tuple(picked.tolist())] = value
        assert seen.keys() == set(combinations(range(9), size))
        assert all(value == pytest.approx(distance(rows, target, one) ** 2) for one, value in seen.items())


@pytest.mark.parametrize(
    ("candidates", "size", "many"),
    [
        (60, 8, "2,558,620,845 choices"),
        (20_000, 2, "199,990,000 choices and 1,000,100,020,000 numbers for those of two halves"),
        (400, 4, "1,050,739,900 choices"),
    ],
)
def test_too_many_choices_are_refused_before_anything_is_computed(candidates, size, many):
    with pytest.raises(UserError, match=f"{size} of {candidates} candidates are {many}; it takes .* Take cp_sat"):
        Exact().choose(np.ones((candidates, 2)), [1, 1], size, np.random.default_rng(1))


def test_the_papers_factories_are_not_too_many():
    assert math.comb(35, 8) < module.MOST_PAIRS
    Exact().check(35, 8)
    Exact().check(40, 8)


# -- CP-SAT -----------------------------------------------------------------------------------------------------------


@pytest.mark.drawn
def test_the_solver_proves_what_is_the_best():
    rng = np.random.default_rng(1)
    for _ in range(examples(60)):
        candidates, classes = int(rng.integers(2, 10)), int(rng.integers(1, 5))
        counts = rng.integers(0, rng.choice([2, 6, 40]), (candidates, classes)).astype(np.float64)
        target = (rng.random(classes) - 0.2) * counts.sum(axis=0)
        size = int(rng.integers(1, candidates))
        found = solved(counts, target, size, 10.0)
        assert found.proven
        assert distance(counts, target, found.chosen) == pytest.approx(best(counts, target, size), abs=1e-6)


@each_kind
def test_the_solver_proves_the_best_of_a_factory(kind):
    factory = next(factories(kind, 1, np.random.default_rng(1)))
    counts, target = factory.counts[:20].astype(np.float64), factory.target / 2
    found = solved(counts, target, 4, 10.0)
    assert found.proven
    assert distance(counts, target, found.chosen) == pytest.approx(found_by(Exact(), counts, target, 4), rel=1e-12)


def test_without_time_the_solver_has_what_it_began_with():
    factory = next(factories("twenty_classes", 1, np.random.default_rng(1)))
    counts, target = factory.counts.astype(np.float64), factory.target
    found = solved(counts, target, 8, 1e-6)
    assert not found.proven
    assert distance(counts, target, found.chosen) <= found_by(GBPCS(), counts, target, 8)


def test_the_solver_wants_whole_numbers():
    with pytest.raises(ValueError, match="cp_sat needs counts, whole numbers from 0 on"):
        CPSAT().choose([[0.5], [1.0]], [1.0], 1, np.random.default_rng(1))
    with pytest.raises(ValueError, match="no room"):
        CPSAT().choose([[10**9], [1]], [10**9], 1, np.random.default_rng(1))
    assert [cp_sat._scale([2**22], np.array([-(2.0**21)])), cp_sat._scale([2**25], np.zeros(1))] == [2**5, 1]


def test_the_solver_depends_on_no_machine(monkeypatch):
    given, solve = [], cp_model.CpSolver.solve
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *one: given.append(one[0].parameters) or solve(*one))
    assert solved(np.eye(3), np.ones(3), 2, 10.0).proven
    assert (given[0].num_workers, given[0].random_seed, given[0].max_deterministic_time) == (1, 1, 10.0)


# -- how near others come ---------------------------------------------------------------------------------------------


@cache
def mean_divergences(kind, number):
    found = list(factories(kind, number, np.random.default_rng(7)))
    selectors = {"exact": Exact(), "gbp_cs": GBPCS(), "pair_swap": PairSwap(starts=20), "monte_carlo": MonteCarlo()}
    means = {}
    for name, selector in selectors.items():
        rng = np.random.default_rng(1)
        choices = [selector.choose(one.counts, one.target, one.size, rng) for one in found]
        means[name] = np.mean([one.divergence(choice) for one, choice in zip(found, choices, strict=True)])
    return means


@each_kind
@pytest.mark.drawn
def test_gbp_cs_lies_between_the_best_of_all_and_the_best_of_1000(kind):
    means = mean_divergences(kind, examples(200))
    assert means["exact"] < means["gbp_cs"] < means["monte_carlo"]


@each_kind
@pytest.mark.drawn
def test_best_swaps_from_20_starts_come_within_a_percent_of_the_best(kind):
    means = mean_divergences(kind, examples(200))
    assert means["exact"] <= means["pair_swap"] < 1.01 * means["exact"]


@given(problem=problems, data=st.data())
@drawn(100)
def test_best_swaps_are_never_worse_than_gbp_cs(problem, data):
    rows, target = problem
    size = data.draw(st.integers(1, len(rows) - 1))
    for selector in (PairSwap(starts=0, kicks=0), PairSwap(starts=0, kicks=1), PairSwap(starts=3)):
        assert found_by(selector, rows, target, size) <= found_by(GBPCS(), rows, target, size) + 1e-6


@each_kind
def test_best_swaps_go_on_where_gbp_cs_ends(kind):
    for factory in factories(kind, 10, np.random.default_rng(1)):
        mask = np.isin(np.arange(33), GBPCS().choose(factory.counts, factory.target, 8, np.random.default_rng(1)))
        (end,) = descended(Quadratic.of(factory.counts.astype(float), factory.target), mask[None])
        picked = PairSwap(starts=0, kicks=0).choose(factory.counts, factory.target, 8, np.random.default_rng(1))
        assert picked.tolist() == np.flatnonzero(end).tolist()


@each_kind
def test_where_a_search_ends_no_swap_helps(kind):
    factory = next(factories(kind, 1, np.random.default_rng(1)))
    masks = subsets(10, 33, 8, np.random.default_rng(1))
    ends = descended(Quadratic.of(factory.counts.astype(float), factory.target), masks)
    for mask, end in zip(masks, ends, strict=True):
        reached = distance(factory.counts, factory.target, np.flatnonzero(end))
        assert reached <= distance(factory.counts, factory.target, np.flatnonzero(mask))
        for new in np.flatnonzero(~end):
            for old in np.flatnonzero(end):
                swapped = end.copy()
                swapped[new], swapped[old] = True, False
                assert distance(factory.counts, factory.target, np.flatnonzero(swapped)) >= reached - 1e-9


def test_rounding_keeps_no_search_going():
    """A far target and near candidates: what swaps seem to change is the rounding of the products with the target."""
    rows = 1e-6 * np.random.default_rng(1).normal(size=(12, 3))
    problem = Quadratic.of(rows, np.array([1e8, -1e8, 1e8]))
    ends = descended(problem, subsets(20, 12, 4, np.random.default_rng(1)))
    assert (ends.sum(axis=1) == 4).all()
