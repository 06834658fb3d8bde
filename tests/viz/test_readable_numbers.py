"""A number for people is near the number, and short."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedsim.metrics.intervals import half_width
from fedsim.viz.human import clock, duration, energy, number, scale, size, with_half_width

UNITS = {
    "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0,
    "J": 1.0, "kJ": 1e3, "MJ": 1e6, "GJ": 1e9,
}  # fmt: skip


@pytest.mark.parametrize("show", [size, duration, energy])
@given(value=st.floats(1e-12, 1e15))
def test_what_is_shown_is_the_value_to_half_a_percent(show: object, value: float) -> None:
    assert callable(show)
    digits, unit = show(value).split()
    assert float(digits) * UNITS[unit] == pytest.approx(value, rel=0.00501)


@given(value=st.floats(1e-5, 999.4))
def test_three_digits_are_enough(value: float) -> None:
    assert len(number(value).replace(".", "").lstrip("0")) <= 4  # 9.999 is shown as 10.00


@given(quantity=st.sampled_from(["bytes", "seconds", "joules"]), small=st.floats(0, 1e18), large=st.floats(0, 1e18))
def test_a_larger_value_never_gets_a_smaller_unit(quantity: str, small: float, large: float) -> None:
    small, large = sorted((small, large))
    if small >= 1e-6:  # less than a millionth is told in the plain unit
        assert scale(quantity, small)[0] <= scale(quantity, large)[0]


def test_nothing_known_has_the_plain_unit() -> None:
    assert scale("seconds", math.nan) == (1, "s")


@given(seconds=st.integers(60, 10**9))
def test_a_clock_loses_no_second(seconds: int) -> None:
    days, _, time = clock(seconds).rpartition(" d ")
    hours, minutes, rest = map(int, time.split(":"))
    assert int(days or 0) * 86400 + hours * 3600 + minutes * 60 + rest == seconds
    assert minutes < 60 and rest < 60


@given(mean=st.floats(1e-3, 1e6), width=st.floats(1e-6, 1e3))
@example(mean=1e6, width=1e-6)
def test_an_interval_is_never_rounded_to_nothing(mean: float, width: float) -> None:
    shown_mean, shown_width = map(float, with_half_width(mean, width).split(" ± "))
    assert shown_width == pytest.approx(width, rel=0.5)
    assert shown_mean == pytest.approx(mean, rel=0.00501)


@given(values=st.floats(1e-3, 1e14).flatmap(lambda mean: st.lists(_nearly(mean), min_size=2, max_size=30)))
def test_seeds_that_agree_but_for_rounding_have_no_interval(values: list[float]) -> None:
    assert " ± " not in with_half_width(values[0], half_width(values))


def _nearly(mean: float) -> st.SearchStrategy[float]:
    """*mean*, as sums in another order give it: a few last bits off."""
    return st.integers(-8, 8).map(lambda bits: mean + bits * math.ulp(mean))
