"""Shadowing: the normal law, Gudmundson's correlation, and draws that depend on nothing but seed, device and number.

40,000 draws of one device, sigma 6 dB. Limits are four standard errors; each test says what fault it would see.
"""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
from pydantic import ValidationError
from radio_sites import site
from scipy import stats

from fedsim.radio.snr import UNLIKELY, Shadowing

SIGMA_DB = 6.0
DRAWS = 40_000
SIGMAS = 4.0
ONCE = Shadowing(sigma_db=SIGMA_DB)
INDEPENDENT = Shadowing(sigma_db=SIGMA_DB, redraw_every_s=1.0)
CORRELATED = Shadowing(sigma_db=SIGMA_DB, redraw_every_s=1.0, correlation_s=2.0)
RHO = math.exp(-1 / 2)


def losses_db(shadowing: Shadowing, draws: int = DRAWS, *, index: int = 0, seed: int = 1) -> np.ndarray:
    """(draws,) losses of one device."""
    found = islice(shadowing.losses_db(site(index=index, seed=seed)), draws)
    return np.array([loss_db for _, loss_db in found])


def correlation(losses: np.ndarray, lag: int) -> float:
    """Of a series with itself *lag* draws later, the mean known to be 0."""
    return float(np.mean(losses[lag:] * losses[:-lag]) / np.mean(losses**2))


def test_independent_draws_follow_the_normal_law() -> None:
    """Standard errors: mean 0.03 dB, deviation 0.35 %. An offset of 5 % of sigma is 10 of them, 5 % of sigma 14."""
    losses = losses_db(INDEPENDENT)
    assert abs(losses.mean()) < SIGMAS * SIGMA_DB / math.sqrt(DRAWS)
    assert losses.std() == pytest.approx(SIGMA_DB, rel=SIGMAS / math.sqrt(2 * DRAWS))
    assert stats.kstest(losses / SIGMA_DB, "norm").pvalue > 1e-4  # sees the deviation's fault of 5 % at 1e-6


def test_independent_draws_are_independent() -> None:
    """Standard error 0.005: a correlation of 0.05 is ten of them."""
    assert abs(correlation(losses_db(INDEPENDENT), 1)) < SIGMAS / math.sqrt(DRAWS)


def test_correlation_leaves_mean_and_deviation_as_they_are() -> None:
    """As for so many fewer independent draws: (1 - a) / (1 + a) of them for the mean, and with a^2 for the deviation.

    Standard errors 0.06 dB and 0.5 %; a fault of 5 % of sigma is five and nearly ten of them.
    """
    losses = losses_db(CORRELATED)
    mean_error_db = SIGMA_DB / math.sqrt(DRAWS * (1 - RHO) / (1 + RHO))
    deviation_error = 1 / math.sqrt(2 * DRAWS * (1 - RHO**2) / (1 + RHO**2))
    assert abs(losses.mean()) < SIGMAS * mean_error_db
    assert losses.std() == pytest.approx(SIGMA_DB, rel=SIGMAS * deviation_error)


def test_correlation_decays_as_gudmundson_found() -> None:
    """exp(-t / correlation): one draw later 0.607, with a standard error of sqrt((1 - a^2) / n) = 0.004.

    The error is Bartlett's (Journal of the Royal Statistical Society, supplement 8, 1946). A fault of 5 % is 0.030,
    more than seven of them.
    """
    assert correlation(losses_db(CORRELATED), 1) == pytest.approx(RHO, abs=SIGMAS * math.sqrt((1 - RHO**2) / DRAWS))


@pytest.mark.parametrize("lag", [2, 3])
def test_correlation_depends_on_seconds_not_on_draws(lag: int) -> None:
    """Draws every 1, and every 2 or 3 seconds: the same correlation at the same distance in time.

    Bartlett's standard error of each is at most 0.007, that of the difference 0.010; a law per draw would be off by
    0.24 and more.
    """
    rarer = CORRELATED.model_copy(update={"redraw_every_s": float(lag)})
    difference = correlation(losses_db(CORRELATED), lag) - correlation(losses_db(rarer, seed=2), 1)
    assert abs(difference) < SIGMAS * 0.010


def test_devices_are_shadowed_independently() -> None:
    """First draws of 5,000 devices: deviation within 4 % (one standard error is 1 %), neighbours within 0.057."""
    first = np.array([losses_db(ONCE, 1, index=index)[0] for index in range(5_000)])
    assert first.std() == pytest.approx(SIGMA_DB, rel=SIGMAS / math.sqrt(2 * 5_000))
    assert abs(correlation(first, 1)) < SIGMAS / math.sqrt(5_000)


def test_one_draw_is_for_ever() -> None:
    [(time_s, loss_db)] = ONCE.losses_db(site())
    assert time_s == 0.0
    assert ONCE.least_db(site()) == loss_db


def test_redraws_come_on_the_dot() -> None:
    shadowing = Shadowing(sigma_db=1.0, redraw_every_s=2.5)
    assert [time_s for time_s, _ in islice(shadowing.losses_db(site()), 4)] == [0.0, 2.5, 5.0, 7.5]


@pytest.mark.parametrize("shadowing", [ONCE, INDEPENDENT, CORRELATED])
def test_the_first_draw_is_the_same_however_often_it_is_drawn_again(shadowing: Shadowing) -> None:
    assert next(shadowing.losses_db(site())) == next(ONCE.losses_db(site()))


def test_a_draw_depends_on_seed_device_and_number_only() -> None:
    others = [CORRELATED.losses_db(site(index=index)) for index in (3, 1, 2)]
    for _ in range(5):  # in any order
        drawn = [next(other) for other in others]
    assert [loss_db for _, loss_db in drawn] == [losses_db(CORRELATED, 5, index=index)[-1] for index in (3, 1, 2)]
    assert losses_db(CORRELATED, 5)[-1] == losses_db(CORRELATED, 9)[4]
    names = [site(1.0, sensor="a"), site(900.0, sensor="b")]
    assert next(ONCE.losses_db(names[0])) == next(ONCE.losses_db(names[1]))


def test_another_seed_or_device_draws_otherwise() -> None:
    first = [losses_db(ONCE, 1, index=index, seed=seed)[0] for index in range(3) for seed in (1, 2)]
    assert len(set(first)) == 6


def test_a_deeper_shadow_scales_the_same_draws() -> None:
    doubled = CORRELATED.model_copy(update={"sigma_db": 2 * SIGMA_DB})
    assert losses_db(doubled, 10) == pytest.approx(2 * losses_db(CORRELATED, 10))


def test_the_least_loss_to_count_on_is_exceeded_once_in_a_million() -> None:
    assert pytest.approx(stats.norm.isf(1e-6), abs=1e-6) == UNLIKELY
    assert INDEPENDENT.least_db(site()) == -UNLIKELY * SIGMA_DB


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"correlation_s": 3.0},
            "correlation_s=3 needs redraw_every_s.*; give redraw_every_s, or leave correlation_s out",
        ),
        ({"sigma_db": 0.0}, "greater than 0"),
        ({"redraw_every_s": 0.0}, "greater than or equal to 0.001"),
        ({"redraw_every_s": 1.0, "correlation_s": -1.0}, "greater than 0"),
    ],
)
def test_shadowing_that_makes_no_sense_is_refused(keys: dict[str, float], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Shadowing(**{"sigma_db": 4.0, **keys})
