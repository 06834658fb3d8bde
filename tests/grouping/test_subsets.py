"""What is true of a choice of devices, whoever makes it: as many as asked for, different, in order, repeatable."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import TypeAdapter, ValidationError
from tiers import drawn

from fedsim import registry
from fedsim.grouping.subset.bayesian import Bayesian
from fedsim.grouping.subset.cp_sat import CPSAT
from fedsim.grouping.subset.exact import Exact
from fedsim.grouping.subset.factories import KINDS, PRIOR, factories
from fedsim.grouping.subset.gbp_cs import GBPCS
from fedsim.grouping.subset.genetic import Genetic
from fedsim.grouping.subset.monte_carlo import MonteCarlo
from fedsim.grouping.subset.pair_swap import PairSwap
from fedsim.grouping.subset.random import RandomSubset
from fedsim.grouping.subset.selector import Quadratic, SubsetSelector, distance, divergence, subsets
from fedsim.settings import OneOf

SELECTORS = {
    "gbp_cs": GBPCS(),
    "gbp_cs zero": GBPCS(start="zero"),
    "gbp_cs random": GBPCS(start="random"),
    "random": RandomSubset(),
    "monte_carlo": MonteCarlo(draws=50),
    "exact": Exact(),
    "pair_swap": PairSwap(),
    "genetic": Genetic(population=8, generations=4),
    "bayesian": Bayesian(initial=2, iterations=2),
    "bayesian any": Bayesian(initial=2, iterations=2, slots="any"),
    "cp_sat": CPSAT(),
}
each_selector = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
DEPEND_ON_CHANCE = ("random", "monte_carlo", "genetic", "bayesian")


def chosen(selector, counts, target, size, seed=1):
    return selector.choose(counts, target, size, np.random.default_rng(seed))


def test_every_registered_selector_is_tested():
    assert {selector.name for selector in SELECTORS.values()} == set(registry.names("subsets"))


problems = st.tuples(st.integers(2, 9), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        arrays(np.int64, shape, elements=st.integers(0, 4) | st.integers(0, 10**4)),
        arrays(np.float64, shape[1], elements=st.floats(-20, 200)),
    )
)


@each_selector
@given(problem=problems, data=st.data())
@drawn(25)
def test_as_many_as_asked_for_different_and_in_order(selector, problem, data):
    """Whatever they hold: devices that are all alike, devices without samples, targets that nobody reaches."""
    counts, target = problem
    size = data.draw(st.integers(0, len(counts) + 2))
    if selector.name == "cp_sat":
        counts = counts % 50
    picked = chosen(selector, counts, target, size)
    assert picked.dtype == np.int64
    assert picked.shape == (min(size, len(counts)),)
    assert (np.diff(picked) > 0).all()
    assert set(picked.tolist()) <= set(range(len(counts)))


@each_selector
def test_the_same_generator_chooses_the_same(selector):
    factory = next(factories("dirichlet", 1, np.random.default_rng(1)))
    counts, target = factory.counts[:15], factory.target / 2
    first, again = (chosen(selector, counts, target, 4, seed=5) for _ in range(2))
    assert first.tolist() == again.tolist()
    others = {tuple(chosen(selector, counts, target, 4, seed).tolist()) for seed in range(8)}
    if selector.name in DEPEND_ON_CHANCE:
        assert len(others) > 1
    if selector.name in ("exact", "cp_sat") or selector == GBPCS():
        assert others == {tuple(first.tolist())}


@each_selector
def test_nobody_and_everybody(selector):
    counts = np.arange(12).reshape(4, 3)
    for size, picked in {0: [], 4: [0, 1, 2, 3], 9: [0, 1, 2, 3]}.items():
        assert chosen(selector, counts, [1, 2, 3], size).tolist() == picked
    assert chosen(selector, counts[:1], [1, 2, 3], 1).tolist() == [0]
    assert chosen(selector, counts[:0], [1, 2, 3], 2).tolist() == []


@each_selector
def test_devices_without_samples(selector):
    assert len(chosen(selector, np.zeros((6, 4), np.int64), np.zeros(4), 2)) == 2
    assert len(chosen(selector, np.zeros((6, 4), np.int64), np.full(4, 2.5), 5)) == 5
    assert len(chosen(selector, np.ones((6, 4), np.int64), np.zeros(4), 5)) == 5, "where each one is too much"


@each_selector
def test_a_number_is_refused_that_none_is(selector):
    counts = np.ones((5, 3), np.int64)
    with pytest.raises(ValueError, match="size=-1 must not be negative"):
        chosen(selector, counts, np.ones(3), -1)
    if selector.needs_counts:
        with pytest.raises(ValueError, match="must be finite"):
            chosen(selector, counts, [1, math.nan, 1], 2)
        with pytest.raises(ValueError, match="must be finite"):
            chosen(selector, np.where(np.eye(5, 3) > 0, np.inf, 1.0), np.ones(3), 2)
        with pytest.raises(ValueError, match="must be .candidates, classes. and .classes,."):
            chosen(selector, counts, np.ones(4), 2)


def test_counts_are_reported_unless_the_choice_is_left_to_chance():
    assert [name for name, selector in SELECTORS.items() if not selector.needs_counts] == ["random"]


def test_who_needs_no_counts_looks_at_none():
    assert chosen(RandomSubset(), np.full((6, 2), np.nan), [0.0], 3).tolist() == (
        chosen(RandomSubset(), np.ones((6, 2)), [9.0, 9.0], 3).tolist()
    )


@pytest.mark.parametrize("draw", [lambda rng: subsets(6000, 4, 2, rng), None], ids=["subsets", "random"])
def test_every_choice_is_as_likely_as_any_other(draw):
    rng = np.random.default_rng(1)
    masks = draw(rng) if draw else np.zeros((6000, 4), np.bool_)
    if not draw:
        for mask in masks:
            mask[RandomSubset().choose(np.empty((4, 0)), [], 2, rng)] = True
    for pair in combinations(range(4), 2):
        assert abs(masks[:, pair].all(axis=1).sum() - 1000) < 4 * math.sqrt(6000 * 5 / 36)


def test_random_choices_are_those_with_the_smallest_numbers():
    masks, numbers = subsets(50, 400, 150, np.random.default_rng(1)), np.random.default_rng(1).random((50, 400))
    assert [mask.tolist() for mask in masks] == [(row <= np.sort(row)[149]).tolist() for row in numbers]


def test_the_quadratic_form_is_the_squared_distance_less_that_of_nobody():
    rng = np.random.default_rng(1)
    rows, target = rng.normal(size=(7, 3)), rng.normal(size=3)
    masks = subsets(5000, 7, 3, rng)
    values = Quadratic.of(rows, target).values(masks) + target @ target
    found = [distance(rows, target, np.flatnonzero(mask)) for mask in masks]
    assert np.sqrt(values) == pytest.approx(found, abs=1e-7)
    assert Bayesian()._distances(Quadratic.of(rows, target), masks, target) == pytest.approx(found, abs=1e-7)


def test_equal_batches_make_the_distance_the_divergence_of_all_samples():
    """d = |A x - y| / (n L) where each mini-batch has n samples (Eqs. 6 and 10-13)."""
    for kind in KINDS:
        factory = next(factories(kind, 1, np.random.default_rng(1)))
        picked = list(range(8))
        far = distance(factory.counts, factory.target, picked)
        assert factory.divergence(picked) == pytest.approx(far / (32 * 10), rel=1e-12)
    with pytest.raises(ValueError, match="have something in it"):
        divergence(np.zeros(3), np.ones(3) / 3)


@pytest.mark.parametrize("kind", KINDS)
def test_made_up_factories_are_what_they_are_called(kind):
    assert pytest.approx(1) == PRIOR.sum()
    found = list(factories(kind, 40, np.random.default_rng(1)))
    counts = np.concatenate([factory.counts for factory in found])
    assert {(*factory.counts.shape, factory.size) for factory in found} == {(33, 62, 8)}
    assert set(counts.sum(axis=1)) == {32}
    assert {int(factory.ready.sum()) for factory in found} == {64}
    assert counts[:, :10].mean() * 10 / 32 == pytest.approx(0.707, abs=0.06)
    if kind == "twenty_classes":
        assert set((KINDS[kind](9, np.random.default_rng(1)) > 0).sum(axis=1)) == {20}
    scatter = {"alike": (0.9, 1.1), "dirichlet": (1.7, 2.3), "twenty_classes": (2.5, 9)}[kind]
    expected = 32 * PRIOR[:10] * (1 - PRIOR[:10])
    assert scatter[0] < (counts[:, :10].var(axis=0) / expected).mean() < scatter[1]


def test_a_scenario_chooses_by_name():
    one = TypeAdapter(Annotated[SubsetSelector, OneOf("subsets")])
    assert one.validate_python({"name": "gbp_cs", "start": "zero"}) == GBPCS(start="zero")
    with pytest.raises(ValidationError, match="mpinv"):
        one.validate_python({"name": "gbp_cs", "start": "somewhere"})
