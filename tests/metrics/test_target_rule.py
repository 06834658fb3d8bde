"""A target is reached at the first evaluation at or above it whose next three average at most half a point below."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.learning.target import first_confirmed


@pytest.mark.parametrize(
    ("accuracies", "position"),
    [
        ([], None),
        ([0.9, 0.9, 0.9], None),  # nothing confirms it yet
        ([0.9, 0.9, 0.9, 0.9], 0),
        ([0.1, 0.8, 0.8, 0.8, 0.8], 1),
        ([0.8, 0.7, 0.8, 0.8, 0.9], None),  # 0.767 after the first; the others wait for more
        ([0.8, 0.7, 0.8, 0.8, 0.9, 0.8], 2),
        ([0.79, 0.9, 0.9, 0.9], None),  # near the target is not at it
        ([0.9, 0.9, 0.9, None], None),  # a model that diverged confirms nothing
        ([None, 0.9, 0.9, 0.9, 0.9], 1),
        ([0.9, 1.0, 1.0, 0.4, 0.8, 0.8, 0.8], 0),  # the average counts, not each
    ],
)
def test_the_first_that_the_next_three_confirm(accuracies: list[float | None], position: int | None) -> None:
    assert first_confirmed(accuracies, 0.8) == position


def test_exactly_half_a_point_below_confirms_whatever_the_target() -> None:
    for percent in range(1, 101):
        target, below = percent / 100, (10 * percent - 5) / 1000
        assert first_confirmed([target, below, below, below], target) == 0, target
        assert first_confirmed([target, below - 1e-6, below, below], target) is None, target


curves = st.lists(st.integers(0, 20).map(lambda n: n / 20), max_size=15)


@given(curve=curves, target=st.integers(1, 20).map(lambda n: n / 20), more=curves)
def test_what_is_confirmed_stays_confirmed(curve: list[float], target: float, more: list[float]) -> None:
    found = first_confirmed(curve, target)
    if found is not None:
        assert curve[found] >= target
        assert first_confirmed(curve + more, target) == found


@given(curve=curves, target=st.integers(1, 19).map(lambda n: n / 20))
def test_a_lower_target_is_reached_no_later(curve: list[float], target: float) -> None:
    high, low = (first_confirmed(curve, goal) for goal in (target + 0.05, target))
    assert high is None or (low is not None and low <= high)
