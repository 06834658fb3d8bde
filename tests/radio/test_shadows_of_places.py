"""Shadows of TR 38.901's depth that neighbours share: the correlation over distance, and whose function they are.

Fields are sums of 128 waves. What one realised field has over a wide plain is off the law by a standard deviation of
0.02 at one distance of correlation, 0.016 for the two fields of a shadow together; tests average over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from radio_sites import BUDGET, GIVEN, shannon, site
from scipy import stats

from fedsim.errors import Misfit
from fedsim.radio.propagation.shadowing import BETWEEN_SITES, Shadowing
from fedsim.radio.propagation.waves import Waves, cosine_of_turns
from fedsim.radio.settings import RadioPath
from fedsim.radio.snr import FromLinkBudget, Given

WIDE_M = 50.0
SHARED = Shadowing(sigma_db=6.0, correlation_m=WIDE_M)
SIGMAS = 4.0


def at(x_m: float, y_m: float, **keys: Any) -> RadioPath:
    return replace(site(100.0, **keys), position_m=(x_m, y_m))


def numbers(paths: Sequence[RadioPath], shadowing: Shadowing = SHARED, draws: int = 1) -> np.ndarray:
    """(draws, paths) standard normal numbers."""
    found = [losses for _, losses in islice(shadowing.losses_db(paths), draws)]
    return np.array(found) / (shadowing.sigma_db or 1.0)


def town(**keys: Any) -> FromLinkBudget:
    return FromLinkBudget(**{**BUDGET, "carrier_hz": 3.5e9, "path_loss": {"name": "uma"}, "shadowing": {}, **keys})


@pytest.mark.parametrize(("lag", "turn"), [(0.1, 0.0), (0.5, 0.5), (1.0, 0.0), (1.0, 0.5), (2.0, 0.2)])
def test_correlation_decays_over_distance_as_gudmundson_found(lag: float, turn: float) -> None:
    """exp(-d / correlation_m), in each direction: 40 seeds with 500 pairs on a plain of 100 km.

    The fields' part of the standard error is at most 0.022 / sqrt(40) = 0.0035, that of 20,000 products 0.01.
    """
    ground = np.random.default_rng(int(10 * lag))
    step_m = lag * WIDE_M * np.array([math.cos(math.pi * turn), math.sin(math.pi * turn)])
    products = []
    for seed in range(40):
        places_m = ground.uniform(0, 1e5, (500, 2))
        here, there = numbers([at(*place, seed=seed) for place in [*places_m, *(places_m + step_m)]])[0].reshape(2, 500)
        products.append(np.mean(here * there))
    assert np.mean(products) == pytest.approx(math.exp(-lag), abs=SIGMAS * 0.0105)


@pytest.mark.parametrize("model", [37.0, 50.0, 7.0])
def test_a_field_has_the_correlation_of_each_distance_that_it_is_asked_for(model: float) -> None:
    """By its waves, without any noise of places: 300 fields at one correlation distance, at 0 exactly the variance."""
    realised = []
    for seed in range(300):
        field = Waves(seed, (0, 0, 2), math.sqrt(37.0 * 50.0))
        pair = np.array([[0.0, 0.0], [model, 0.0]])
        realised.append(np.prod(field.at(pair, model)))
    assert np.mean(realised) == pytest.approx(math.exp(-1), abs=SIGMAS * 1.07 / math.sqrt(300))


def test_a_field_is_the_sum_of_waves_that_its_description_has() -> None:
    """One wave of each 128th part, turned by a golden section; weights are square roots of the ratio of densities."""
    field, places_m = Waves(3, (0, 1, 2), WIDE_M), np.random.default_rng(1).uniform(-1e3, 1e3, (600, 2))
    waves = np.array([field._across, field._up])
    reach = 2 * math.pi * WIDE_M * np.hypot(*waves)
    for uniform in (128 * (1 - 1 / np.sqrt(1 + reach**2)) - np.arange(128), field._phases):
        assert 0 <= uniform.min() < 0.1 and 0.9 < uniform.max() < 1
    turns = np.arctan2(field._up, field._across) / (2 * math.pi)
    assert np.diff(turns) % 1 == pytest.approx((math.sqrt(5) - 1) / 2)
    density = ((1 + reach**2) / (1 + (37.0 / WIDE_M * reach) ** 2)) ** 1.5
    by_hand = np.cos(2 * math.pi * (places_m @ waves + field._phases)) @ np.sqrt(2 * density / density.sum())
    assert field.at(places_m, 37.0) == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("draw", [0, 3])
def test_over_a_wide_plain_shadows_follow_the_normal_law(draw: int) -> None:
    """4,000 places 50 km around, each a distance of its own from the others; 0.045 is 4 standard errors."""
    places = np.random.default_rng(7).uniform(0, 5e4, (4_000, 2)).tolist()
    shadowing = SHARED.model_copy(update={"redraw_every_s": 1.0, "correlation_s": 2.0})
    drawn = numbers([at(*place) for place in places], shadowing, draw + 1)[draw]
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    assert drawn.std() == pytest.approx(1.0, abs=0.045)


def test_at_one_place_draws_follow_the_normal_law() -> None:
    """1,200 of them: 4 standard errors of the deviation are 0.08, of a correlation with the next one 0.115."""
    drawn = numbers([at(123.0, 456.0)], SHARED.model_copy(update={"redraw_every_s": 1.0}), 1_200)[:, 0]
    assert stats.kstest(drawn, "norm").pvalue > 1e-4
    assert drawn.std() == pytest.approx(1.0, abs=0.08)
    assert abs(np.mean(drawn[1:] * drawn[:-1])) < 0.115


def test_at_each_place_draws_go_on_from_those_before_as_gudmundson_found() -> None:
    """X_n = a X_(n-1) + sqrt(1 - a^2) W_n, whatever is shared over distance."""
    places = [at(123.0, 456.0), at(130.0, 450.0)]
    fresh = numbers(places, SHARED.model_copy(update={"redraw_every_s": 1.0}), 12)
    kept = numbers(places, SHARED.model_copy(update={"redraw_every_s": 1.0, "correlation_s": 2.0}), 12)
    rho = math.exp(-1 / 2)
    assert kept[0].tolist() == fresh[0].tolist()
    assert kept[1:] == pytest.approx(rho * kept[:-1] + math.sqrt(1 - rho**2) * fresh[1:], abs=1e-12)


def test_half_of_the_shadow_of_a_place_is_common_to_all_masts() -> None:
    """2,000 places far from each other: 4 standard errors of the correlation are 0.067, and 0.09 between others."""
    places = np.random.default_rng(3).uniform(0, 1e5, (2_000, 2)).tolist()
    sites = [at(*place, station=station) for place in places for station in (0, 1)]
    one, other = numbers(sites)[0].reshape(2_000, 2).T
    assert np.corrcoef(one, other)[0, 1] == pytest.approx(BETWEEN_SITES, abs=0.067)
    assert abs(np.corrcoef(one[1:], other[:-1])[0, 1]) < 0.09
    sectors = [replace(path, station=9, mast=0) for path in sites[::2]]
    assert numbers(sectors)[0].tolist() == one.tolist()


def test_the_shadow_of_a_place_depends_on_seed_mast_place_and_number_only() -> None:
    """To the last bit, whoever else is asked for, whatever the device is called and in whichever order."""
    again = SHARED.model_copy(update={"redraw_every_s": 1.0, "correlation_s": 2.0})
    crowd = [at(37.0 * index, 11.0 * index % 70, index=index, station=index % 3) for index in range(1_100)]
    together = numbers(crowd, again, 3)
    for place in (0, 511, 512, 1_099):
        assert numbers([crowd[place]], again, 3)[:, 0].tolist() == together[:, place].tolist()
    assert numbers(crowd[::-1], again, 3).tolist() == together[:, ::-1].tolist()
    namesake = replace(crowd[5], index=99, sensor="another")
    assert numbers([namesake], again, 3)[:, 0].tolist() == together[:, 5].tolist()
    others = [replace(crowd[5], mast=9), at(190.0, 11.0), at(185.0, 55.0, seed=2)]
    assert len({*np.concatenate([numbers([one])[0] for one in others]), together[0, 5]}) == 4


def test_neighbours_share_shadows_and_those_far_away_do_not() -> None:
    here, beside, away = numbers([at(0.0, 0.0), at(0.5, 0.0), at(5_000.0, 0.0)], SHARED)[0]
    assert abs(here - beside) < 0.7  # sqrt(2 (1 - exp(-0.01))) = 0.14 is one standard deviation
    assert abs(here - away) > 0.01


def test_who_stands_nowhere_is_refused() -> None:
    with pytest.raises(
        Misfit, match="'cam-1' stands nowhere in particular, .* give its position_m in the topology, or"
    ) as no:
        shannon({**BUDGET, "shadowing": {"sigma_db": 4.0, "correlation_m": 50.0}}).rates(site())
    assert no.value.key == ("snr", "shadowing", "correlation_m")


@pytest.mark.parametrize("correlation_m", [None, "model", 40.0])
@pytest.mark.parametrize(("view", "sigma_db"), [("always", 4.0), ("never", 6.0)])
def test_shadows_of_a_town_are_as_deep_as_the_standard_says(
    view: str, sigma_db: float, correlation_m: float | str | None
) -> None:
    """UMa: 4 dB with line of sight, 6 dB without; 2,000 devices far apart, 4 standard errors are 6.4 %."""
    places = np.random.default_rng(5).uniform(0, 1e5, (2_000, 2)).tolist()
    paths = [at(*place, index=index) for index, place in enumerate(places)]
    source = town(path_loss={"name": "uma", "in_view": view}, shadowing={"correlation_m": correlation_m})
    [(_, losses_db)] = source.losses_db(paths)
    assert losses_db.std() == pytest.approx(sigma_db, rel=0.064)
    assert stats.kstest(losses_db / sigma_db, "norm").pvalue > 1e-4


def test_each_device_has_the_shadow_of_its_own_line_of_sight() -> None:
    """Of 3,000 at 100 m about a third sees the station; 4 standard errors of each deviation are 9 %."""
    paths = [site(100.0, index=index) for index in range(3_000)]
    source = town()
    [(_, losses_db)] = source.losses_db(paths)
    medians_db = source.coupling_losses_db(paths)
    seen = medians_db == medians_db.min()
    assert losses_db[seen].std() == pytest.approx(4.0, rel=0.09)
    assert losses_db[~seen].std() == pytest.approx(6.0, rel=0.07)
    assert stats.kstest(losses_db / np.where(seen, 4.0, 6.0), "norm").pvalue > 1e-4


def test_a_given_deviation_counts_before_the_model_s() -> None:
    paths = [site(100.0, index=index) for index in range(9)]
    [(_, given_db)] = town(shadowing={"sigma_db": 2.0}).losses_db(paths)
    [(_, own_db)] = town().losses_db(paths)
    assert set(np.round(own_db / given_db, 9)) == {2.0, 3.0}


def test_the_least_loss_to_count_on_is_by_the_model_s_deviation() -> None:
    source = town(path_loss={"name": "uma", "in_view": "never"}, shadowing={"redraw_every_s": 1.0})
    assert source.least_loss_db(site()) == pytest.approx(-6.0 * stats.norm.isf(1e-6), abs=1e-5)
    once = town()
    assert once.least_loss_db(site()) == next(once.losses_db([site()]))[1][0]


@pytest.mark.parametrize("shadowing", [{}, {"redraw_every_s": 1.0}])
def test_who_has_no_depth_of_its_own_needs_one(shadowing: dict[str, Any]) -> None:
    for source, keys in ((FromLinkBudget, BUDGET), (Given, GIVEN)):
        with pytest.raises(
            ValidationError, match="sigma_db is left out, and .* has no standard deviation of its own; give"
        ):
            source(**{**keys, "shadowing": shadowing})
        with pytest.raises(ValidationError, match="correlation_m=model, and .* has no distance of its own; give"):
            source(**{**keys, "shadowing": {"sigma_db": 3.0, "correlation_m": "model"}})
        assert source(**{**keys, "shadowing": None}).losses_db([site()])


def test_a_cosine_of_our_own_is_the_usual_one() -> None:
    turns = np.linspace(-3, 3, 10_001)
    assert cosine_of_turns(turns) == pytest.approx(np.cos(2 * math.pi * turns), abs=2e-9)
