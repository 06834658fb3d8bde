"""The Kaplan-Meier median by hand: censored runs count as what they are."""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np
import pytest

from fedsim.metrics.kaplan_meier import Median, kaplan_meier_median


def of(reached: list[float], missed: list[float]) -> Median:
    return kaplan_meier_median([*reached, *[nan] * len(missed)], [*[nan] * len(reached), *missed])


def test_without_censored_runs_it_is_the_value_by_which_half_have_reached_the_target() -> None:
    assert of([5.0, 1.0, 3.0], []).value == 3.0
    assert of([4.0, 1.0, 3.0, 2.0], []).value == 2.0, "at 2 half of them have"
    assert of([7.0], []) == Median(1, 1, 7.0, *[pytest.approx(nan, nan_ok=True)] * 3)  # type: ignore[arg-type]


def test_a_run_that_ended_before_moves_the_median_of_the_others_up() -> None:
    assert of([1.0, 2.0, 3.0], []).value == 2.0
    assert of([1.0, 2.0, 3.0], [9.0, 9.0]).value == 3.0
    assert of([1.0, 2.0, 3.0], [0.5, 0.5]).value == 2.0, "of those nothing is known that the others do not tell"


def test_the_textbook_curve_is_followed_step_by_step() -> None:
    """Reached at 1, 3, 4 and 6, ended at 2 and 5: 5/6, 5/6 * 3/4 = 0.625, * 2/3 = 0.417."""
    found = of([6.0, 1.0, 4.0, 3.0], [5.0, 2.0])
    assert (found.n, found.reached, found.value) == (6, 4, 4.0)


def test_a_curve_that_falls_to_exactly_one_half_has_its_median_there() -> None:
    assert of([1.0, 2.0], [9.0, 9.0]).value == 2.0
    assert of([1.0, 3.0], [2.0, 2.0, 9.0]).value == 3.0, "4/5 * 1/2"
    assert of([1.0] * 3, [9.0] * 3).value == 1.0
    assert of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [9.0] * 7).value == 7.0, "a product of seven fractions"


def test_runs_that_need_the_same_are_one_step_and_one_that_ended_there_was_still_there() -> None:
    assert of([2.0, 2.0, 2.0], [2.0]).value == 2.0, "1/4"
    assert of([1.0, 2.0, 2.0], [2.0, 2.0, 2.0]).value == 2.0, "1/2: all five were there at 2"
    assert isnan(of([1.0, 2.0], [2.0, 2.0, 2.0]).value), "3/5"


def test_where_more_than_half_missed_there_is_a_bound_that_surely_holds() -> None:
    found = of([1.0], [5.0, 5.0])
    assert isnan(found.value) and found.above == 5.0
    assert of([], [5.0, 5.2, 5.4]).above == 5.2, "the median of three is the second, and one ended at 5"
    assert of([3.0], [5.0, 5.4]).above == 5.0, "one by 3, and the one that ended at 5 a moment later"
    assert of([], [4.0]).above == 4.0
    assert of([], [4.0, 9.0]).above == 4.0, "half of two is one"


def test_a_run_that_ended_early_may_have_reached_the_target_before_the_others() -> None:
    """Ended at 1, reached at 2, ended at 3 and 4: two of four may have it at 2, so it is above 1 and no more."""
    found = of([2.0], [1.0, 3.0, 4.0])
    assert isnan(found.value) and found.above == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_below_the_median_of_whatever_the_censored_runs_would_have_needed(seed: int) -> None:
    rng = np.random.Generator(np.random.Philox(seed))
    size = int(rng.integers(1, 9))
    truth, limit = rng.exponential(4.0, size), rng.integers(0, 5, size).astype(float)
    found = kaplan_meier_median(np.where(truth <= limit, truth, nan).tolist(), limit.tolist())
    half = np.sort(truth)[(size + 1) // 2 - 1]
    assert isnan(found.value) != isnan(found.above)
    assert isnan(found.above) or found.above < half


def test_the_interval_has_ends_only_where_the_runs_give_it_some() -> None:
    three = of([1.0, 2.0, 3.0], [])
    assert three.low == 1.0 and isnan(three.high)
    for found in (of([7.0], []), of([2.0, 2.0], []), of([], [3.0, 4.0])):
        assert isnan(found.low) and isnan(found.high)


def test_the_interval_of_ten_runs_is_greenwoods_on_the_scale_of_log_minus_log() -> None:
    def interval(step: int) -> tuple[float, float]:
        survival = 1 - step / 10
        greenwood = sum(1 / (at_risk * (at_risk - 1)) for at_risk in range(10, 10 - step, -1))
        widths = [sign * 1.959964 * greenwood**0.5 / abs(np.log(survival)) for sign in (1, -1)]
        low, high = (survival ** float(np.exp(width)) for width in widths)
        return low, high

    low, high = (next(step for step in range(1, 10) if interval(step)[end] <= 0.5) for end in (0, 1))
    found = of([float(value) for value in range(1, 11)], [])
    assert (found.low, found.value, found.high) == (low, 5.0, high) == (1.0, 5.0, 8.0)


def test_a_run_of_which_nothing_is_known_is_censored_at_its_start() -> None:
    assert kaplan_meier_median([nan, nan], [nan, 5.0]) == of([], [0.0, 5.0])
    assert of([], [nan]).above == 0.0


def test_a_run_that_can_never_reach_the_target_stays_among_those_that_have_not() -> None:
    assert of([3.0, 4.0], [1.0]).value == 3.0, "the other two tell what the third would have needed"
    assert of([3.0, 4.0], [inf]).value == 4.0, "no other run tells that: by 3, one of three"
    found = of([3.0], [inf, inf])
    assert isnan(found.value) and found.above == inf
    assert of([], [inf, 5.0, 7.0]).above == 7.0 and of([], [inf]).above == inf


def test_no_run_has_no_median_and_no_bound() -> None:
    found = of([], [])
    assert (found.n, found.reached) == (0, 0)
    assert isnan(found.value) and isnan(found.above)


@pytest.mark.parametrize(
    ("needed", "ended"), [([inf], [1.0]), ([-1.0], [1.0]), ([nan], [-inf]), ([nan], [-1.0]), ([nan, -inf], [1.0, 1.0])]
)
def test_what_no_run_can_spend_is_refused(needed: list[float], ended: list[float]) -> None:
    with pytest.raises(ValueError, match="must be finite, and nothing below 0"):
        kaplan_meier_median(needed, ended)


def test_each_run_has_an_end() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) values of what was needed and \(1,\) of what was spent"):
        kaplan_meier_median([1.0, 2.0], [1.0])
