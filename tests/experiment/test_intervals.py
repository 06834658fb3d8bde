"""Intervals of means, where they can be counted, and differences of protocols that met the same seeds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from fedsim.errors import UserError
from fedsim.experiment.compare import Difference, difference
from fedsim.metrics.intervals import half_width


def test_the_interval_holds_the_true_mean_in_95_of_100_samples() -> None:
    """4,000 samples of 5: standard error 0.34 points, four of them 1.4. The normal quantile would give 87.8 %."""
    samples = np.random.default_rng(1).normal(3.0, 2.0, size=(4000, 5))
    widths = np.array([half_width(list(sample)) for sample in samples])
    errors = np.abs(samples.mean(axis=1) - 3.0)
    tolerance = 4 * math.sqrt(0.95 * 0.05 / len(samples))
    assert (errors <= widths).mean() == pytest.approx(0.95, abs=tolerance)
    too_narrow = norm.ppf(0.975) * samples.std(axis=1, ddof=1) / math.sqrt(5)
    assert (errors <= too_narrow).mean() < 0.95 - tolerance  # so a wrong quantile would be seen


def test_what_diverged_on_some_seeds_has_no_interval() -> None:
    assert math.isnan(half_width([1.0, math.inf, 2.0]))
    assert math.isnan(half_width([math.inf, math.inf]))
    assert half_width([0.1, 0.1, 0.1]) == 0, "though the mean of these is another number, by rounding"


def summary(**scores: dict[int, float]) -> pd.DataFrame:
    """Protocol -> seed -> final accuracy, as a summary."""
    rows = [(name, seed, "event", score) for name, seeds in scores.items() for seed, score in seeds.items()]
    return pd.DataFrame(rows, columns=["protocol", "seed", "accounting", "final_accuracy"])


def test_what_seeds_have_in_common_is_no_doubt_about_a_difference() -> None:
    """Seeds differ by 20 points and protocols by 1: exactly 1 on every seed, so there is nothing left to vary."""
    base = {1: 0.5, 2: 0.7, 3: 0.9}
    table = summary(base=base, better={seed: score + 0.01 for seed, score in base.items()})
    found = difference(table, "better", "base")
    assert (found.mean, found.half_width) == (pytest.approx(0.01), pytest.approx(0.0, abs=1e-12))
    assert (found.n, found.sign, difference(table, "base", "better").sign) == (3, 1, -1)
    assert half_width(list(base.values())) > 0.3  # unpaired, nobody could tell


def test_a_difference_is_of_the_seeds_that_both_have_and_of_events() -> None:
    table = summary(a={1: 0.9, 2: 0.8, 3: math.nan}, b={2: 0.6, 3: 0.5, 4: 0.1})
    formula = table.assign(accounting="formula", final_accuracy=0.0)
    found = difference(pd.concat([table, formula]), "a", "b")
    assert (found.mean, found.n, found.sign) == (pytest.approx(0.2), 1, 0)  # one seed decides nothing
    assert found.of == 2, "on seeds 2 and 3 both were run"
    assert math.isnan(found.half_width)


def test_a_difference_within_its_interval_has_no_sign() -> None:
    assert Difference(mean=0.01, half_width=0.02, n=3, of=3).sign == 0
    assert Difference(mean=0.02, half_width=0.02, n=3, of=3).sign == 0
    assert Difference(mean=-0.03, half_width=0.02, n=3, of=3).sign == -1


@pytest.mark.parametrize(
    ("one", "other", "metric", "message"),
    [
        ("fedagv", "fedprox", "final_accuracy", "there is no protocol 'fedagv' .*did you mean 'fedavg'"),
        ("fedavg", "fedprox", "final_accurazy", "no column 'final_accurazy'.*did you mean 'final_accuracy'"),
        ("fedavg", "fedprox", "final_accuracy", "'fedavg' and 'fedprox' have no seed in common"),
    ],
)
def test_what_cannot_be_compared_is_refused(one: str, other: str, metric: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        difference(summary(fedavg={1: 0.5}, fedprox={2: 0.5}), one, other, metric)


def test_where_both_diverged_there_is_no_difference_and_no_seed_is_left_out() -> None:
    found = difference(summary(a={1: math.inf, 2: 2.0}, b={1: math.inf, 2: 1.0}), "a", "b")
    assert (math.isnan(found.mean), found.n, found.sign) == (True, 2, 0)


def test_a_run_that_stands_twice_is_refused() -> None:
    table = summary(a={1: 0.5}, b={1: 0.4})
    with pytest.raises(UserError, match="stand twice"):
        difference(pd.concat([table, table]), "a", "b")
