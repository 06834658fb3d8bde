"""Selectors that try many choices: the best of what they tried, and each with the peculiarity that it is known for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tiers import drawn

from fedsim.errors import Misfit
from fedsim.grouping.subset import bayesian, genetic, monte_carlo
from fedsim.grouping.subset.bayesian import Bayesian, disjoint
from fedsim.grouping.subset.factories import factories
from fedsim.grouping.subset.genetic import Genetic
from fedsim.grouping.subset.genetic_operators import crossed, mutated
from fedsim.grouping.subset.monte_carlo import MonteCarlo
from fedsim.grouping.subset.random import RandomSubset
from fedsim.grouping.subset.selector import SubsetSelector, distance, subsets
from fedsim.settings import OneOf

FACTORY = next(factories("dirichlet", 1, np.random.default_rng(1)))


def far(selector, seed=1, factory=FACTORY):
    picked = selector.choose(factory.counts, factory.target, factory.size, np.random.default_rng(seed))
    return distance(factory.counts, factory.target, picked)


@pytest.mark.parametrize(
    ("selector", "first", "second"),
    [
        (
            Genetic(population=20, generations=8, mutation=0.1),
            [1, 2, 10, 15, 18, 21, 22, 28],
            [8, 10, 18, 21, 22, 25, 27, 32],
        ),
        (Bayesian(iterations=8), [0, 7, 8, 12, 16, 22, 27, 32], [1, 5, 10, 14, 18, 23, 27, 31]),
        (Bayesian(iterations=8, slots="any"), [2, 5, 6, 10, 15, 18, 21, 28], [14, 16, 20, 26, 27, 30, 31, 32]),
    ],
)
def test_choices_are_yesterdays(selector, first, second):
    found = [selector.choose(FACTORY.counts, FACTORY.target, 8, np.random.default_rng(seed)) for seed in (1, 2)]
    assert [picked.tolist() for picked in found] == [first, second]


# -- Monte Carlo ------------------------------------------------------------------------------------------------------


def test_of_all_draws_the_best_is_taken(monkeypatch):
    masks = subsets(300, 33, 8, np.random.default_rng(1))
    least = min(distance(FACTORY.counts, FACTORY.target, np.flatnonzero(mask)) for mask in masks)
    assert far(MonteCarlo(draws=300)) == pytest.approx(least, rel=1e-12)
    monkeypatch.setattr(monte_carlo, "NUMBERS_AT_ONCE", 1)
    alike = MonteCarlo(draws=5).choose(np.ones((33, 2)), [8, 8], 8, np.random.default_rng(1))
    assert alike.tolist() == np.flatnonzero(masks[0]).tolist(), "of equal ones the first"
    assert MonteCarlo(draws=1).choose(np.ones((33, 2)), [8, 8], 8, np.random.default_rng(1)).tolist() == alike.tolist()
    monkeypatch.setattr(monte_carlo, "NUMBERS_AT_ONCE", 700)  # 21 draws at once
    assert far(MonteCarlo(draws=300)) == pytest.approx(least, rel=1e-12)


def test_more_draws_of_the_same_generator_are_never_worse():
    assert far(MonteCarlo(draws=40_000)) <= far(MonteCarlo(draws=31_000))
    assert far(MonteCarlo()) < np.mean([far(RandomSubset(), seed) for seed in range(20)])


# -- genetic ----------------------------------------------------------------------------------------------------------

pairs = st.integers(2, 12).flatmap(
    lambda length: st.integers(1, length).flatmap(
        lambda size: st.tuples(
            *[
                st.sets(st.integers(0, length - 1), min_size=size, max_size=size).map(
                    lambda ones: np.isin(np.arange(length), list(ones))
                )
            ]
            * 2
        )
    )
)


@given(pair=pairs, seed=st.integers(0, 99))
@drawn(200)
def test_children_choose_as_many_and_nothing_is_lost_between_the_two(pair, seed):
    one, other = pair
    first, second = crossed(one, other, np.random.default_rng(seed))
    assert first.sum() == second.sum() == one.sum()
    assert (first.astype(int) + second == one.astype(int) + other).all()
    masks = mutated(np.array([first, second]), 0.5, np.random.default_rng(seed))
    assert (masks.sum(axis=1) == one.sum()).all()


def test_children_are_not_only_copies_and_parents_stay():
    one, other = subsets(2, 33, 8, np.random.default_rng(1))
    before = one.copy(), other.copy()
    children = [crossed(one, other, np.random.default_rng(seed))[0] for seed in range(50)]
    assert sum(not (np.array_equal(child, one) or np.array_equal(child, other)) for child in children) > 10
    assert np.array_equal(before, (one, other))


def test_each_one_is_replaced_with_its_chance():
    """8 of 33, 5,000 times, with 0.1: 4,000 of 40,000 ones, give or take 4 sigmas of 60."""
    masks = subsets(5000, 33, 8, np.random.default_rng(1))
    changed = mutated(masks, 0.1, np.random.default_rng(2))
    assert abs((masks & ~changed).sum() - 4000) < 240
    assert np.array_equal(mutated(masks, 0.0, np.random.default_rng(2)), masks)


def test_generations_help_and_only_the_generator_is_drawn_from():
    np.random.seed(3)
    state = np.random.get_state()[1].tolist()
    small, long = Genetic(generations=1), Genetic(generations=25)
    assert far(long) < far(small)
    assert far(small) == far(MonteCarlo(draws=100))  # the same first generation
    assert np.random.get_state()[1].tolist() == state


def test_without_pymoo_the_settings_say_what_to_install(monkeypatch):
    monkeypatch.setattr(genetic, "find_spec", lambda name: None)

    class Scenario(BaseModel):
        selector: Annotated[SubsetSelector, OneOf("subsets")]

    with pytest.raises(ValueError, match="pip install pymoo"):
        Scenario.model_validate({"selector": {"name": "genetic"}})
    Scenario.model_validate({"selector": {"name": "gbp_cs"}})


def test_a_tournament_has_no_more_contestants_than_there_are():
    with pytest.raises((Misfit, ValueError), match="tournament=3 must be at most population=2"):
        Genetic(population=2)


# -- Bayesian ---------------------------------------------------------------------------------------------------------


def test_slots_of_their_own_take_one_of_each_part():
    """33 candidates in 8 parts: the authors' handicap. Of any 8 candidates, 2 in 100 choices are of this kind."""
    parts = np.searchsorted(np.arange(1, 9) * 33 // 8, np.arange(33), side="right")
    masks = disjoint(500, 33, 8, np.random.default_rng(1))
    assert all(parts[mask].tolist() == list(range(8)) for mask in masks)
    assert masks.any(axis=0).all()
    for seed in range(3):
        picked = Bayesian(iterations=2).choose(FACTORY.counts, FACTORY.target, 8, np.random.default_rng(seed))
        assert parts[picked].tolist() == list(range(8))
    free = Bayesian(iterations=2, slots="any").choose(FACTORY.counts, FACTORY.target, 8, np.random.default_rng(1))
    assert len(set(parts[free].tolist())) < 8


@pytest.mark.parametrize("slots", ["disjoint", "any"])
def test_what_is_tried_next_is_never_worse_than_what_was_tried_first(slots):
    """The first choices are the same draws; and on the whole, the next ones help."""
    first, more = ([far(Bayesian(iterations=number, slots=slots), s) for s in range(4)] for number in (0, 8))
    assert all(after <= before for before, after in zip(first, more, strict=True))
    assert np.mean(more) < np.mean(first)


def test_the_process_sees_where_candidates_stand_or_which_ones_take_part():
    """From 0 to 1, as the length scale that it finds is bounded."""
    masks = np.array([[True, False, False, True], [False, True, True, False]])
    assert Bayesian()._points(masks).tolist() == [[0.0, 0.75], [0.25, 0.5]]
    assert Bayesian(slots="any")._points(masks).tolist() == masks.astype(float).tolist()


def test_what_is_hoped_for_is_the_mean_of_what_a_choice_gains():
    """Against sums over normal values."""
    mean, deviation, z = np.array([0.0, 1.0, 3.0, 9.0]), np.array([1.0, 0.5, 2.0, 1.0]), np.linspace(-12, 12, 100_001)
    process = SimpleNamespace(predict=lambda points, return_std: (mean, deviation))
    gains = np.maximum(0, 1.5 - mean[:, None] - deviation[:, None] * z) * np.exp(-np.square(z) / 2) / np.sqrt(2 * np.pi)
    assert bayesian._fitted(np.eye(3), np.arange(3.0)).kernel_.nu == 2.5, "as in the library of the authors' code"
    hopes = bayesian._expected_improvement(process, mean, 1.5)
    assert hopes == pytest.approx(gains.sum(axis=1) * (z[1] - z[0]), rel=1e-5)
