"""Shadowing: the normal law, Gudmundson's correlation in time, and what stations, masts and devices have in common.

A pair is a station and a device; here each station stands on a mast of its own unless a test says otherwise.

40,000 draws of one pair, sigma 6 dB. Limits are four standard errors; each test says what fault it would see.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from pydantic import ValidationError
from radio_sites import site
from scipy import stats

from fedsim.radio.propagation.shadowing import BETWEEN_SITES, UNLIKELY, Shadowing
from fedsim.radio.settings import RadioPath

SIGMA_DB = 6.0
DRAWS = 40_000
SIGMAS = 4.0
ONCE = Shadowing(sigma_db=SIGMA_DB)
INDEPENDENT = Shadowing(sigma_db=SIGMA_DB, redraw_every_s=1.0)
CORRELATED = Shadowing(sigma_db=SIGMA_DB, redraw_every_s=1.0, correlation_s=2.0)
RHO = math.exp(-1 / 2)


def losses_db(
    shadowing: Shadowing, draws: int = DRAWS, *, index: int = 0, station: int = 0, seed: int = 1
) -> np.ndarray:
    """(draws,) losses of one pair."""
    found = islice(shadowing.losses_db([site(index=index, station=station, seed=seed)]), draws)
    return np.array([loss_db for _, [loss_db] in found])


def together_db(shadowing: Shadowing, sites: Sequence[RadioPath], draws: int = 1) -> np.ndarray:
    """(draws, sites) losses of several pairs, asked for at once."""
    return np.array([losses for _, losses in islice(shadowing.losses_db(sites), draws)])


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
    """First draws of 5,000 devices of a station.

    Deviation within 4 % (one standard error is 1 %), neighbours' correlation within 0.057 (0.014): one shadow for all
    would be off by 100 % and 1, one that half of them share with a neighbour by 0.5.
    """
    [first] = together_db(ONCE, [site(index=one, station=7) for one in range(5_000)])
    assert first.std() == pytest.approx(SIGMA_DB, rel=SIGMAS / math.sqrt(2 * 5_000))
    assert abs(correlation(first, 1)) < SIGMAS / math.sqrt(5_000)


@pytest.mark.parametrize("shadowing", [ONCE, CORRELATED], ids=["once", "again"])
def test_half_of_a_device_s_shadow_is_common_to_all_masts(shadowing: Shadowing) -> None:
    """5,000 devices at two masts each: a correlation of 0.5 with a standard error of (1 - 0.25) / sqrt(5,000) = 0.011.

    Also after redraws, and with nothing in common between one device at one mast and another at the other.
    """
    sites = [site(index=index, station=station) for index in range(5_000) for station in (0, 1)]
    for losses in together_db(shadowing, sites, 1 if shadowing is ONCE else 4)[[0, -1]]:
        one, other = losses.reshape(5_000, 2).T
        assert np.corrcoef(one, other)[0, 1] == pytest.approx(BETWEEN_SITES, abs=SIGMAS * 0.011)
        assert abs(np.corrcoef(one[1:], other[:-1])[0, 1]) < SIGMAS / math.sqrt(5_000)
        assert one.std() == pytest.approx(SIGMA_DB, rel=SIGMAS / math.sqrt(2 * 5_000))


def test_stations_on_one_mast_share_all_shadows() -> None:
    sites = [site(index=index, station=3) for index in range(9)]
    sectors = [replace(path, station=8, mast=3) for path in sites]
    assert together_db(CORRELATED, sectors, 4).tolist() == together_db(CORRELATED, sites, 4).tolist()


def test_a_mast_and_a_device_do_not_change_their_parts() -> None:
    """70 devices at 70 masts: 0.5 between the masts of a device, nothing between devices, nor when the two change.

    With f = sqrt(0.5) C(device) + sqrt(0.5) O(mast, device), a column's mean is C, so it has a variance of half. The
    standard error of a mean of products is at most 0.020; a law that does not tell mast from device has 1 in the last.
    """
    sites = [site(index=device, station=mast) for mast in range(70) for device in range(70)]
    grid = together_db(ONCE, sites).reshape(70, 70) / SIGMA_DB
    common = grid.mean(axis=0)
    assert common.var() == pytest.approx(0.5 + 0.5 / 70, abs=SIGMAS * 0.5 * math.sqrt(2 / 70))
    own = grid - common
    off_diagonal = ~np.eye(70, dtype=bool)
    for one, other in ((own[:, 1:], own[:, :-1]), (own, own.T)):
        assert abs((one * other)[off_diagonal[:, : one.shape[1]]].mean()) < SIGMAS * 0.020


@pytest.mark.parametrize("number", [1, 50])
def test_redraws_of_many_follow_the_normal_law_too(number: int) -> None:
    """20,000 devices in one instant; standard errors 0.04 dB and 0.5 %: a fault of 5 % of sigma is 7 and 10 of them."""
    losses = together_db(CORRELATED, [site(index=index) for index in range(20_000)], number + 1)[number]
    assert abs(losses.mean()) < SIGMAS * SIGMA_DB / math.sqrt(20_000)
    assert losses.std() == pytest.approx(SIGMA_DB, rel=SIGMAS / math.sqrt(2 * 20_000))
    assert stats.kstest(losses / SIGMA_DB, "norm").pvalue > 1e-4


def test_one_draw_is_for_ever() -> None:
    [(time_s, [loss_db])] = ONCE.losses_db([site()])
    assert time_s == 0.0
    assert ONCE.least_db(site()) == loss_db


def test_redraws_come_on_the_dot() -> None:
    shadowing = Shadowing(sigma_db=1.0, redraw_every_s=2.5)
    assert [time_s for time_s, _ in islice(shadowing.losses_db([site()]), 4)] == [0.0, 2.5, 5.0, 7.5]


@pytest.mark.parametrize("shadowing", [ONCE, INDEPENDENT, CORRELATED])
def test_the_first_draw_is_the_same_however_often_it_is_drawn_again(shadowing: Shadowing) -> None:
    assert next(shadowing.losses_db([site()])) == next(ONCE.losses_db([site()]))


def test_a_draw_depends_on_seed_pair_and_number_only() -> None:
    pairs = [(index, station) for index in (3, 0, 2) for station in (1, 0)]
    sites = [site(index=index, station=station) for index, station in pairs]
    together = together_db(CORRELATED, sites, 9)  # to the last bit, whoever else is asked for, and however far ahead
    for column, (index, station) in enumerate(pairs):
        assert losses_db(CORRELATED, 9, index=index, station=station).tolist() == together[:, column].tolist()
    assert together_db(CORRELATED, sites[::-1], 5).tolist() == together[:5, ::-1].tolist()
    others = [CORRELATED.losses_db([one]) for one in sites]
    for _ in range(5):  # in any order
        drawn = [next(other) for other in others]
    assert [loss_db for _, [loss_db] in drawn] == together[4].tolist()
    names = [site(1.0, sensor="a"), site(900.0, sensor="b")]
    assert next(ONCE.losses_db(names[:1])) == next(ONCE.losses_db(names[1:]))


@pytest.mark.parametrize("sites", [1, 30, 5_000, 20_000])
def test_how_many_numbers_are_drawn_ahead_changes_none(sites: int, monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = [site(index=index, station=index % 3) for index in range(sites)]
    draws = 40 if sites < 100 else 4
    ahead = together_db(CORRELATED, crowd, draws)
    monkeypatch.setattr("fedsim.radio.propagation.shadowing.AT_ONCE", 1)
    assert np.array_equal(together_db(CORRELATED, crowd, draws), ahead)


def test_another_seed_device_or_station_draws_otherwise() -> None:
    first = [
        losses_db(ONCE, 1, index=index, station=station, seed=seed)[0]
        for index in range(3)
        for station in range(3)
        for seed in (1, 2)
    ]
    assert len(set(first)) == 18


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
        ({"correlation_m": 0.0}, "greater than or equal to 0.1"),
        ({"correlation_m": 1e-15}, "greater than or equal to 0.1"),
        ({"correlation_m": "town"}, "'model'"),
        ({"redraw_every_s": 0.0}, "greater than or equal to 0.001"),
        ({"redraw_every_s": 1.0, "correlation_s": -1.0}, "greater than 0"),
    ],
)
def test_shadowing_that_makes_no_sense_is_refused(keys: dict[str, float], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Shadowing(**{"sigma_db": 4.0, **keys})
