"""A thinned line has the look of the whole one: its ends, its peaks, and points of its own only."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedsim.report.thinning import kept_points

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200)


@given(values, st.integers(3, 60))
def test_points_are_kept_in_order_with_both_ends_and_never_more_than_asked(ups: list[float], most: int) -> None:
    kept = kept_points(range(len(ups)), ups, most)
    assert len(kept) == min(len(ups), most)
    assert (np.diff(kept) > 0).all() and (kept[0], kept[-1]) == (0, len(ups) - 1)


@given(st.integers(1, 998))
def test_a_single_peak_is_kept_wherever_it_is(place: int) -> None:
    ups = np.zeros(1_000)
    ups[place] = 1.0
    assert place in kept_points(range(1_000), ups, 50)


def test_it_is_the_published_rule() -> None:
    """By hand: of points 1, 2 the mean of the next bucket (3.5, 2.0) makes a larger triangle with 2, then 3."""
    assert kept_points([0, 1, 2, 3, 4, 5], [0, 1, 5, 0, 4, 0], 4).tolist() == [0, 2, 3, 5]


def test_unequal_steps_count() -> None:
    across = np.r_[np.linspace(0, 1, 50), np.linspace(10, 100, 50)]
    ups = np.sin(across)
    kept = kept_points(across, ups, 40)
    assert len(kept) == 40 and np.abs(ups[kept]).max() > 0.9
