"""What intervals over a few seeds are worth: how often they hold the truth, and how often a difference is seen.

Sets of values are drawn from distributions whose mean and median are known, and go through the code that makes the
tables. Everything is drawn from one seed, so the page is the same each time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fedsim.experiment.compare import Difference
from fedsim.metrics.intervals import half_width
from fedsim.metrics.kaplan_meier import Median, kaplan_meier_median
from writers.markdown import table

SETS = 1_000
SEEDS = (3, 5, 10)
MISSED = 0.2
"""The share of runs that miss the target."""
LATEST = math.exp(0.8416212)
"""Where all runs end: a standard log-normal time exceeds it with a probability of 20 %."""


def interval_table() -> str:
    """Percentages of the sets, by the number of seeds."""
    rows = [[what, *(f"{100 * share(seeds):.1f} %" for seeds in SEEDS)] for what, share in SHARES.items()]
    return table(["share of 1,000 sets", *(f"{seeds} seeds" for seeds in SEEDS)], rows)


def normal(seeds: int) -> NDArray[np.float64]:
    """Sets of values, (sets, seeds), with mean 0 and standard deviation 1."""
    return np.random.Generator(np.random.Philox([2024, seeds])).standard_normal((SETS, seeds))


def student_holds(values: NDArray[np.float64], mean: float) -> float:
    """How often the interval of the mean holds the true one."""
    return float(np.mean([abs(np.mean(one) - mean) <= half_width(one.tolist()) for one in values]))


def called(values: NDArray[np.float64], sign: int) -> float:
    """How often differences by seed have this sign for `Difference`."""
    found = (Difference(float(np.mean(one)), half_width(one.tolist()), len(one), len(one)) for one in values)
    return float(np.mean([one.sign == sign for one in found]))


@cache
def medians(seeds: int) -> tuple[Median, ...]:
    """Of times with a true median of 1, of which a fifth is censored."""
    times = np.exp(normal(seeds))
    return tuple(
        kaplan_meier_median(np.where(one <= LATEST, one, math.nan).tolist(), [LATEST] * seeds) for one in times
    )


def median_holds(seeds: int) -> float:
    """How often the interval of the median holds the true one; an end that is not there excludes nothing."""
    return float(np.mean([not (one.low > 1.0 or one.high < 1.0) for one in medians(seeds)]))


SHARES: dict[str, Callable[[int], float]] = {
    "the interval of a mean holds the true mean, values normal": lambda seeds: student_holds(normal(seeds), 0.0),
    "the same, values log-normal (skewed: sigma 1)": lambda seeds: student_holds(np.exp(normal(seeds)), math.exp(0.5)),
    "a paired difference of one standard deviation is called": lambda seeds: called(normal(seeds) + 1.0, 1),
    "a paired difference of two standard deviations is called": lambda seeds: called(normal(seeds) + 2.0, 1),
    "no difference, and one is called": lambda seeds: called(normal(seeds), 1) + called(normal(seeds), -1),
    "a fifth of the runs censored: there is a Kaplan-Meier median": lambda seeds: float(
        np.mean([not math.isnan(one.value) for one in medians(seeds)])
    ),
    "its interval holds the true median": median_holds,
    "its interval has an upper end": lambda seeds: float(np.mean([not math.isnan(one.high) for one in medians(seeds)])),
}
