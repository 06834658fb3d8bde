"""The table of docs/comparing.md: drawn shares agree with what theory says of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import nct
from scipy.stats import t as student
from writers import intervals


def allowed(share: float) -> float:
    """Four standard errors of a share of all sets."""
    return 4 * math.sqrt(share * (1 - share) / intervals.SETS)


@pytest.mark.parametrize("seeds", intervals.SEEDS)
def test_students_interval_of_normal_values_holds_95_percent_and_calls_5(seeds: int) -> None:
    values = intervals.normal(seeds)
    assert intervals.student_holds(values, 0.0) == pytest.approx(0.95, abs=allowed(0.95))
    wrongly = [intervals.called(values, sign) for sign in (1, -1)]
    assert sum(wrongly) == pytest.approx(0.05, abs=allowed(0.05))
    assert sum(wrongly) + intervals.student_holds(values, 0.0) == pytest.approx(1.0), "two sides of one thing"


@pytest.mark.parametrize("seeds", intervals.SEEDS)
@pytest.mark.parametrize("effect", [1.0, 2.0])
def test_the_power_is_that_of_the_noncentral_t(seeds: int, effect: float) -> None:
    expected = float(nct.sf(student.ppf(0.975, seeds - 1), seeds - 1, effect * math.sqrt(seeds)))
    assert intervals.called(intervals.normal(seeds) + effect, 1) == pytest.approx(expected, abs=allowed(expected))


def test_of_skewed_values_the_interval_holds_less() -> None:
    for seeds in intervals.SEEDS:
        assert intervals.student_holds(np.exp(intervals.normal(seeds)), math.exp(0.5)) < 0.95 - allowed(0.95)


def test_with_three_runs_the_median_is_missed_when_all_are_above_it_and_one_tells() -> None:
    """Its interval begins at the first run that reached the target: 1/8, less the sets in which no run did."""
    expected = 1 - (0.5**3 - intervals.MISSED**3)
    assert intervals.median_holds(3) == pytest.approx(expected, abs=allowed(expected))
    two_at_least = 1 - intervals.MISSED**3 - 3 * intervals.MISSED**2 * (1 - intervals.MISSED)
    there = np.mean([not math.isnan(one.value) for one in intervals.medians(3)])
    assert there == pytest.approx(two_at_least, abs=allowed(two_at_least))
    assert all(math.isnan(one.high) for one in intervals.medians(3))


def test_a_fifth_of_the_runs_is_censored() -> None:
    missed = np.mean([one.n - one.reached for one in intervals.medians(10)]) / 10
    assert missed == pytest.approx(intervals.MISSED, abs=4 * math.sqrt(0.2 * 0.8 / (10 * intervals.SETS)))
