"""The Pareto front, by hand, and against its definition."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from fedsim.metrics.pareto import pareto_front

ACCURACY_AND_COST = (True, False)


def on_front(points: list[tuple[float, ...]], directions: tuple[bool, ...] = ACCURACY_AND_COST) -> list[bool]:
    return pareto_front(points, directions).tolist()


def test_who_is_worse_in_one_and_better_in_none_is_not_on_the_front() -> None:
    assert on_front([(0.9, 60.0), (0.8, 20.0), (0.85, 70.0), (0.9, 61.0), (0.79, 20.0)]) == [True, True] + [False] * 3


def test_the_direction_of_each_objective_counts() -> None:
    points = [(1.0, 1.0), (2.0, 2.0)]
    assert on_front(points, (True, True)) == [False, True]
    assert on_front(points, (False, False)) == [True, False]
    assert on_front(points, (True, False)) == on_front(points, (False, True)) == [True, True]


def test_points_that_are_equal_in_all_objectives_stay_together() -> None:
    assert on_front([(0.9, 60.0), (0.9, 60.0)]) == [True, True]
    assert on_front([(0.9, 60.0), (0.9, 60.0), (0.9, 59.0)]) == [False, False, True]


def test_what_is_not_known_is_never_on_the_front_and_keeps_nobody_off() -> None:
    assert on_front([(nan, 1.0), (0.5, nan), (0.4, 9.0)]) == [False, False, True]
    assert on_front([(nan, nan)]) == [False]


def test_infinite_values_are_compared_as_such() -> None:
    assert on_front([(0.5, inf), (0.5, 1e300)]) == [False, True]
    assert on_front([(0.6, inf), (0.5, 1e300)]) == [True, True]


def test_one_objective_has_its_best_and_one_point_or_none_are_no_special_case() -> None:
    assert on_front([(3.0,), (1.0,), (1.0,)], (False,)) == [False, True, True]
    assert on_front([(0.1, 5.0)]) == [True]
    assert on_front([]) == []


@pytest.mark.parametrize("objectives", [1, 2, 3, 4])
def test_any_number_of_objectives_follows_the_definition(objectives: int) -> None:
    rng = np.random.Generator(np.random.Philox(objectives))
    directions = tuple(bool(one) for one in rng.integers(0, 2, objectives))
    points = [tuple(map(float, row)) for row in rng.integers(0, 4, (40, objectives))]  # with many ties

    def dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        gains = [(a - b) if larger else (b - a) for a, b, larger in zip(one, other, directions, strict=True)]
        return min(gains) >= 0 and max(gains) > 0

    expected = [not any(dominates(other, one) for other in points) for one in points]
    assert on_front(points, directions) == expected
    assert any(expected) and (objectives == 4 or not all(expected))


@pytest.mark.parametrize("points", [[(1.0, 2.0, 3.0)], [1.0, 2.0], [[[1.0, 2.0]]]])
def test_points_that_do_not_fit_the_objectives_are_refused(points: list[object]) -> None:
    with pytest.raises(ValueError, match="do not have 2 objectives"):
        pareto_front(points, ACCURACY_AND_COST)  # type: ignore[arg-type]


def test_objectives_are_needed() -> None:
    with pytest.raises(ValueError, match="do not have 0 objectives"):
        pareto_front([()], ())
