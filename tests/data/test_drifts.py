"""Drifts are mixtures of phases at every moment; what is written in their settings is what happens, and when."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import ValidationError
from tiers import drawn

from fedsim import registry
from fedsim.data.stream.drift import Gradual, Recurring, Shifts, Sudden
from fedsim.data.stream.settings import StreamSettings

HOUR_S = 3600.0
moments = st.floats(0, 1e12)
lengths = st.floats(1e-3, 1e9)

DRIFTS = {
    "sudden": st.lists(st.floats(1e-18, 1e18), min_size=1, max_size=20, unique=True).map(
        lambda at: Sudden(at=tuple(sorted(at)))
    ),
    "gradual": st.tuples(st.floats(0, 1e18), st.floats(1e-18, 1e18))
    .filter(lambda span: span[0] < span[1])
    .map(lambda span: Gradual(begin=span[0], end=span[1])),
    "recurring": st.builds(Recurring, phases=st.integers(2, 1000), length=st.floats(1e-18, 1e18)),
    "shifts": st.builds(
        Shifts, lengths_s=st.lists(st.floats(1e-18, 1e18), min_size=2, max_size=20), start_s=st.floats(0, 1e18)
    ),
}
each_drift = pytest.mark.parametrize("drift", registry.names("drifts"))


def phase(mixture: tuple[float, ...]) -> int:
    """The one that is there alone."""
    assert sorted(mixture) == [0.0] * (len(mixture) - 1) + [1.0]
    return mixture.index(1.0)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"name": "sudden", "at": [10, 20.0]}, Sudden(at=(10.0, 20.0))),
        ({"name": "gradual", "begin": 0, "end": 5}, Gradual(begin=0.0, end=5.0)),
        ({"name": "recurring", "length": 5, "strength": 0.5}, Recurring(length=5.0, strength=0.5)),
        ({"name": "shifts", "lengths_s": [60.0, 30.0]}, Shifts(lengths_s=(60.0, 30.0))),
    ],
)
def test_a_stream_names_its_drift(written, meant):
    assert StreamSettings.model_validate({"samples": 5, "drift": written}).drift == meant


def test_there_is_a_group_of_classes_for_each_phase():
    assert Sudden(at=(5.0,), groups=(("normal",), ("normal", "ball"))).groups[1] == ("normal", "ball")
    with pytest.raises(ValidationError, match="3 groups of classes are named, and there are 2 phases"):
        Gradual(begin=1.0, end=2.0, groups=(("a",), ("b",), ("c",)))
    with pytest.raises(ValidationError):
        Gradual(begin=1.0, end=2.0, groups=(("a",), ()))


@each_drift
@drawn(200)
@given(data=st.data())
def test_a_mixture_adds_up_to_one_at_every_moment(drift, data):
    settled = data.draw(DRIFTS[drift])
    mixture = settled.mixture(data.draw(st.floats(0, 1e18)))
    assert len(mixture) == settled.all_phases >= 2
    assert min(mixture) >= 0
    assert math.fsum(mixture) == pytest.approx(1, abs=1e-15)


@each_drift
def test_each_phase_has_its_time(drift):
    """Seen evenly over a day or two, every phase is the strongest at some time."""
    settled = {
        "sudden": Sudden(at=(10, 20, 80)),
        "gradual": Gradual(begin=20, end=60),
        "recurring": Recurring(phases=4, length=10),
        "shifts": Shifts(lengths_s=(20, 30, 10)),
    }[drift]
    strongest = {int(np.argmax(settled.mixture(at))) for at in range(100)}
    assert strongest == set(range(settled.all_phases))


@drawn(100)
@given(at=st.lists(st.integers(1, 1000), min_size=1, max_size=10, unique=True), now=st.integers(0, 1001))
@example(at=[5], now=5)
def test_a_sudden_drift_is_in_the_phase_of_the_moments_gone_by(at, now):
    drift = Sudden(at=tuple(map(float, sorted(at))))
    assert phase(drift.mixture(float(now))) == sum(moment <= now for moment in at)


def test_just_before_its_moment_a_sudden_drift_has_not_begun():
    drift = Sudden(at=(10.0, 20.0))
    before = [phase(drift.mixture(math.nextafter(moment, 0))) for moment in drift.at]
    assert before == [0, 1]
    assert [phase(drift.mixture(moment)) for moment in drift.at] == [1, 2]


@drawn(100)
@given(begin=st.floats(0, 1e6), length=lengths, ratio=st.floats(0, 1))
def test_a_gradual_drift_is_a_straight_line_between_its_ends(begin, length, ratio):
    assume(begin + length > begin)
    drift = Gradual(begin=begin, end=begin + length)
    assert drift.mixture(begin) == (1, 0)
    assert drift.mixture(drift.end) == drift.mixture(drift.end + 1) == (0, 1)
    assert drift.mixture(math.nextafter(begin, 0) if begin else 0.0) == (1, 0)
    at = begin + ratio * (drift.end - begin)
    rounding = 4 * np.finfo(float).eps * (1 + begin / (drift.end - begin))
    assert drift.mixture(at)[1] == pytest.approx(ratio, abs=rounding)


@drawn(100)
@given(times=st.lists(st.floats(0, 100), min_size=2, max_size=10).map(sorted))
def test_a_gradual_drift_never_turns_back(times):
    shares = [Gradual(begin=10, end=60).mixture(at)[1] for at in times]
    assert shares == sorted(shares)


@drawn(200)
@given(phases=st.integers(2, 50), length=st.integers(1, 1000), now=st.integers(0, 10**6), turns=st.integers(0, 1000))
def test_a_recurring_drift_comes_back_after_all_its_phases(phases, length, now, turns):
    drift = Recurring(phases=phases, length=length)
    assert phase(drift.mixture(now)) == now // length % phases
    assert drift.mixture(now + turns * phases * length) == drift.mixture(now)
    assert phase(drift.mixture(now + length)) == (phase(drift.mixture(now)) + 1) % phases


@pytest.mark.parametrize("length", [0.1, 0.3, 1 / 3, 1e-3, 1.1])
def test_a_recurring_drift_changes_at_multiples_of_a_length_that_is_no_binary_number(length):
    """The k-th change is at k * length as floating point has it, in the first and in the thousandth period."""
    drift = Recurring(phases=3, length=length)
    assert all(phase(drift.mixture(k * length)) == k % 3 for k in range(3000))


def test_by_default_a_day_has_three_shifts_of_eight_hours():
    drift = Shifts()
    day = [phase(drift.mixture(hour * HOUR_S)) for hour in range(24)]
    assert day == [0] * 8 + [1] * 8 + [2] * 8
    assert (drift.by, drift.all_phases) == ("sim_time_s", 3)


@drawn(200)
@given(
    hours=st.lists(st.integers(1, 12), min_size=2, max_size=6),
    start=st.integers(0, 100),
    now=st.integers(0, 1000),
    days=st.integers(0, 400),
)
def test_shifts_follow_the_clock_day_after_day(hours, start, now, days):
    """Whole hours: the shift is that in which the hour of the day lies, found by writing out the day."""
    drift = Shifts(lengths_s=[hour * HOUR_S for hour in hours], start_s=start * HOUR_S)
    day = np.repeat(np.arange(len(hours)), hours)
    assert phase(drift.mixture(now * HOUR_S)) == day[(start + now) % len(day)]
    assert drift.mixture((now + days * len(day)) * HOUR_S) == drift.mixture(now * HOUR_S)


def test_shifts_have_the_share_of_the_day_that_their_lengths_have():
    drift = Shifts(lengths_s=(10.0, 30.0, 60.0), start_s=7.0)
    seen = np.mean([drift.mixture(at + 0.5) for at in range(1000)], axis=0)
    assert seen == pytest.approx([0.1, 0.3, 0.6])


@pytest.mark.parametrize(
    ("drift", "options", "message"),
    [
        (Sudden, {}, "Field required"),
        (Sudden, {"at": []}, "at least 1 item"),
        (Sudden, {"at": [0.0]}, "greater than 0"),
        (Sudden, {"at": [5.0, 5.0]}, "5 comes after 5 and must be later than it"),
        (Sudden, {"at": [5.0, 3.0]}, "3 comes after 5"),
        (Gradual, {"begin": 5.0, "end": 5.0}, "end=5 must be later than begin=5"),
        (Gradual, {"begin": -1.0, "end": 5.0}, "greater than or equal to 0"),
        (Recurring, {"phases": 1, "length": 5.0}, "greater than or equal to 2"),
        (Recurring, {"phases": 2, "length": 0.0}, "greater than 0"),
        (Recurring, {"phases": 2, "length": math.inf}, "finite"),
        (Shifts, {"lengths_s": [3600.0]}, "at least 2 items"),
        (Shifts, {"by": "rounds"}, "sim_time_s"),
        (Shifts, {"strength": 0.0}, "greater than 0"),
        (Shifts, {"strength": 1.5}, "less than or equal to 1"),
    ],
)
def test_a_drift_that_cannot_be_is_refused(drift, options, message):
    with pytest.raises(ValidationError, match=message):
        drift(**options)
