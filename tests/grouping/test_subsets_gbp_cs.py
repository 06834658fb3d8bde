"""GBP-CS is Algorithm 2 of FedGS: the paper's lines as plain loops, and what must be true of any search of its kind."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tiers import drawn, examples

from fedsim.grouping.subset import gbp_cs as module
from fedsim.grouping.subset.factories import KINDS, PRIOR, factories
from fedsim.grouping.subset.gbp_cs import gbp_cs
from fedsim.grouping.subset.selector import distance, divergence

STARTS = ("mpinv", "zero", "random")
each_start = pytest.mark.parametrize("start", STARTS)


WHOLE = 26_000
"""Times a factory's y: whole numbers."""


def by_the_paper(a, y, size, start, rng):
    """Eqs. 14-18, on the paper's A, (classes, candidates), and in whole numbers but for the pseudo-inverse."""
    x = np.zeros(a.shape[1], np.int64)
    if start == "mpinv":
        x[np.argsort(-(np.linalg.pinv(a) @ y), kind="stable")[:size]] = 1
    elif start == "random":
        x[rng.choice(len(x), size, replace=False)] = 1
    while x.sum() < size:
        g = a.T @ (a @ x - y)
        x[min((i for i in range(len(x)) if x[i] == 0), key=lambda i: g[i])] = 1
    squares = [np.square(a @ x - y).sum()]
    while True:
        g = a.T @ (a @ x - y)
        i = min((i for i in range(len(x)) if x[i] == 0), key=lambda i: g[i])
        j = max((j for j in range(len(x)) if x[j] == 1), key=lambda j: g[j])
        swapped = x.copy()
        swapped[i], swapped[j] = 1, 0
        if np.square(a @ swapped - y).sum() >= squares[-1]:
            return np.flatnonzero(x), np.sqrt(squares)
        x = swapped
        squares.append(np.square(a @ x - y).sum())


@each_start
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.drawn
def test_it_is_the_papers_algorithm(kind, start):
    for seed, factory in enumerate(factories(kind, examples(100), np.random.default_rng(3))):
        trail = gbp_cs(factory.counts, factory.target, 8, start, np.random.default_rng(seed))
        y = np.rint(WHOLE * factory.target).astype(np.int64)
        assert y == pytest.approx(WHOLE * factory.target, rel=1e-12, abs=1e-6)
        x, distances = by_the_paper(WHOLE * factory.counts.T, y, 8, start, np.random.default_rng(seed))
        assert trail.chosen.tolist() == x.tolist()
        assert trail.distances == pytest.approx(distances / WHOLE, rel=1e-9)


def test_by_hand():
    """A x = x_1 + 2 x_2 + 4 x_3 + 8 x_4, y = 9, two of four. From zero: 8 first, then g = 1 (8 - 9) < 0 is least for 4.

    12 is 3 off. Then g = 3 a: the one with the largest is 8, the zero with the smallest is 1; 5 is 4 off, so 12 stays.
    """
    trail = gbp_cs([[1.0], [2.0], [4.0], [8.0]], [9.0], 2, "zero")
    assert trail.chosen.tolist() == [2, 3]
    assert (trail.warm_up, trail.distances) == ([9.0, 1.0], [3.0])
    assert [total.tolist() for total in (*trail.warm_up_sums, *trail.sums)] == [[0.0], [8.0], [12.0]]
    assert gbp_cs([[3.0], [1.0]], [1.0], 1, "zero").chosen.tolist() == [1], "one alone is swapped, too"


reals = st.floats(-100, 100, allow_subnormal=False)
problems = st.tuples(st.integers(1, 12), st.integers(1, 6)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, shape, elements=st.integers(-3, 3).map(float) | reals),
        arrays(np.float64, shape[1], elements=reals),
    )
)


@each_start
@given(problem=problems, data=st.data())
@drawn(100)
def test_of_any_real_numbers_each_swap_helps_and_as_many_are_chosen(start, problem, data):
    rows, target = problem
    size = data.draw(st.integers(0, len(rows)))
    trail = gbp_cs(rows, target, size, start, np.random.default_rng(1))
    assert len(set(trail.chosen.tolist())) == len(trail.chosen) == size
    assert all(after < before for before, after in zip(trail.distances, trail.distances[1:], strict=False))
    assert distance(rows, target, trail.chosen) == pytest.approx(trail.distances[-1], abs=1e-9)
    assert len(trail.warm_up) == (size if start == "zero" else 0)
    assert [np.linalg.norm(total - target) for total in trail.sums] == pytest.approx(trail.distances)


def shapes():
    """Matrices: long and short, with rows that are equal or nearly so, with empty rows and columns, of low rank."""
    rng = np.random.default_rng(1)
    long, short = rng.integers(0, 5, (9, 20)).astype(float), rng.integers(0, 5, (40, 6)).astype(float)
    low = rng.normal(size=(12, 3)) @ rng.normal(size=(3, 8))
    empty = short.copy()
    empty[:, 2] = 0
    return {
        "long": long,
        "short": short,
        "square": long[:6, :6] + 9 * np.eye(6),
        "equal": long[[0, 1, 2, 0, 4, 1]],
        "nearly equal": np.vstack([long[:5], long[:5] + 1e-4 * rng.normal(size=(5, 20))]),
        "empty rows": long * (np.arange(9) % 3 > 0)[:, None],
        "empty columns": empty,
        "low": low,
        "nothing": np.zeros((5, 4)),
    }


@pytest.mark.parametrize("rows", shapes().values(), ids=shapes())
def test_the_start_is_the_ranking_of_the_pseudo_inverse(rows):
    rng = np.random.default_rng(2)
    for _ in range(20):
        target = rng.normal(size=rows.shape[1]) * 20
        weights = np.linalg.pinv(rows.T, rtol=None) @ target
        assert module._pinv_solution(rows, target) == pytest.approx(weights, rel=1e-8, abs=1e-8)
        ranked = np.argsort(-np.rint(weights * 1e9 / max(np.abs(weights).max(), 1e-300)), kind="stable")
        assert module._largest(module._pinv_solution(rows, target), 4).tolist() == ranked[:4].tolist()


def test_equal_candidates_are_taken_in_order():
    rows = np.tile([[3.0, 1.0], [1.0, 2.0]], (4, 1))
    for start in ("mpinv", "zero"):
        picked = gbp_cs(rows, [5.0, 5.0], 3, start).chosen
        assert picked.tolist() == sorted(picked.tolist())
        assert set(picked.tolist()) <= {0, 1, 2, 3, 4, 5}
        assert {place % 2 for place in picked.tolist()} == {0, 1}
    assert gbp_cs(np.ones((5, 2)), [1.0, 1.0], 2).chosen.tolist() == [0, 1]
    assert module._largest(np.array([1e-12, 3e-12, 2e-12]), 1).tolist() == [1]
    assert module._largest(np.array([0.1, 0.1 * (1 + 1e-12)]), 1).tolist() == [0]


def test_the_trail_has_the_curves_of_figure_3():
    """Divergence of all mini-batches after each step; from zero it falls while devices are added."""
    factory = next(factories("alike", 1, np.random.default_rng(1)))
    trail = gbp_cs(factory.counts, factory.target, factory.size, "zero")
    curve = [divergence(factory.ready + total, PRIOR) for total in (*trail.warm_up_sums, *trail.sums)]
    assert len(curve) >= 9
    assert curve[0] > 2 * curve[-1]
    assert curve[-1] == pytest.approx(factory.divergence(trail.chosen), rel=1e-12)


def test_what_cannot_be_chosen_is_refused():
    with pytest.raises(ValueError, match="size=3 must be at most 2, the number of rows"):
        gbp_cs(np.eye(2), [1, 1], 3)
    with pytest.raises(ValueError, match="needs an rng"):
        gbp_cs(np.eye(2), [1, 1], 1, "random")
