"""How good the choices of devices are that selectors make, and how long they take; GBP-CS as factories grow.

    python -m benchmarks.subsets [--factories N] [--slow N]

Factories are those of `fedsim.grouping.subset.factories`: 2 devices are pre-sampled, 8 of the other 33 are chosen, and
mini-batches have 32 samples of 62 classes. All selectors are given the same ones. The gap is that of the mean
divergence to the mean of `exact`. Milliseconds are medians, and grow with what else the machine does: read them as
ratios. `exact` is measured by turns with the matrix products that its search needs, of 32 bits and with as many
threads, once in the inner dimension that it has, about half the candidates, and once in that of plain class counts, 62
+ 2.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import get_args

import numpy as np
from rich.console import Console
from rich.table import Table

from fedsim.grouping.subset.bayesian import Bayesian
from fedsim.grouping.subset.cp_sat import CPSAT
from fedsim.grouping.subset.exact import Exact, halves
from fedsim.grouping.subset.factories import KINDS, PRIOR, Factory, factories
from fedsim.grouping.subset.gbp_cs import GBPCS, Start, gbp_cs
from fedsim.grouping.subset.genetic import Genetic
from fedsim.grouping.subset.monte_carlo import MonteCarlo
from fedsim.grouping.subset.pair_swap import PairSwap
from fedsim.grouping.subset.random import RandomSubset
from fedsim.grouping.subset.selector import Quadratic, SubsetSelector, divergence

QUICK: dict[str, SubsetSelector] = {
    "exact": Exact(),
    "pair_swap": PairSwap(),
    "gbp_cs": GBPCS(),
    "gbp_cs, zero": GBPCS(start="zero"),
    "gbp_cs, random": GBPCS(start="random"),
    "monte_carlo": MonteCarlo(),
    "random": RandomSubset(),
}
SLOW: dict[str, SubsetSelector] = {
    "cp_sat": CPSAT(),
    "genetic": Genetic(),
    "bayesian": Bayesian(),
    "bayesian, any": Bayesian(slots="any"),
}
CLASSES = 62
TURNS = 15
MANY, LARGE = 1_000, 100
GROWTH = (25, 50, 100, 200, 400)


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measured(selector: SubsetSelector, made: list[Factory]) -> tuple[list[float], list[float]]:
    """Divergences and seconds, of each factory."""
    rng, found, taken = np.random.default_rng(1), [], []
    for factory in made:
        begin = time.perf_counter()
        chosen = selector.choose(factory.counts, factory.target, factory.size, rng)
        taken.append(time.perf_counter() - begin)
        found.append(factory.divergence(chosen))
    return found, taken


def quality(number: int, few: int) -> Table:
    table = Table("selector", "factories", *(f"{kind}: mean, gap %" for kind in KINDS), "ms, median")
    made = {kind: list(factories(kind, number, np.random.default_rng(1))) for kind in KINDS}
    best = {kind: measured(Exact(), made[kind])[0] for kind in KINDS}
    for name, selector in (QUICK | SLOW).items():
        used = few if name in SLOW else number
        cells, taken = [], []
        for kind in KINDS:
            found, times = measured(selector, made[kind][:used])
            gap = 100 * (statistics.mean(found) / statistics.mean(best[kind][:used]) - 1)
            cells.append(f"{statistics.mean(found):.4f} {gap:+.1f}")
            taken += times
        table.add_row(name, str(used), *cells, f"{1e3 * statistics.median(taken):.2f}")
    return table


def ways(number: int) -> Table:
    """From where to where GBP-CS comes: mean divergences and swaps."""
    table = Table(
        "factories", "start", "divergences before the start is complete", "at the start", "at the end", "swaps"
    )
    for kind in KINDS:
        made = list(factories(kind, number, np.random.default_rng(1)))
        for start in get_args(Start):
            rng = np.random.default_rng(1)
            trails = [gbp_cs(each.counts, each.target, each.size, start, rng) for each in made]
            sums = [(*trail.warm_up_sums, *trail.sums) for trail in trails]
            ready = len(trails[0].warm_up_sums)
            curves = [
                [divergence(each.ready + total, PRIOR) for total in (*some[: ready + 1], some[-1])]
                for each, some in zip(made, sums, strict=True)
            ]
            *before, first, last = np.mean(curves, axis=0)
            swaps = statistics.mean(len(trail.sums) - 1 for trail in trails)
            warm_up = " ".join(f"{value:.3f}" for value in before)
            table.add_row(kind, start, warm_up, f"{first:.3f}", f"{last:.3f}", f"{swaps:.1f}")
    return table


def against_products() -> Table:
    factory = next(factories("alike", 1, np.random.default_rng(1)))
    found = list(halves(Quadratic.of(factory.counts.astype(np.float64), factory.target), factory.size))
    own = [(half.first, half.right(slice(None))) for half in found]
    rng = np.random.default_rng(1)
    plain = [tuple(rng.random((len(side), CLASSES + 2), dtype=np.float32) for side in pair) for pair in own]
    work = {
        "exact": lambda: Exact().choose(factory.counts, factory.target, factory.size, rng),
        "products": lambda: [left @ right.T for left, right in own],
        f"products of {CLASSES} + 2": lambda: [left @ right.T for left, right in plain],
    }
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(TURNS):
        for name, each in work.items():
            taken[name].append(seconds(each))
    exact = statistics.median(taken["exact"])
    table = Table("work", "ms, median", "least", "exact takes, times that")
    for name, times in taken.items():
        middle = statistics.median(times)
        table.add_row(name, f"{1e3 * middle:.1f}", f"{1e3 * min(times):.1f}", f"{exact / middle:.2f}")
    return table


def growth() -> Table:
    table = Table("factories", "devices", "seconds", "ms each")
    rng = np.random.default_rng(1)
    sizes = [(100, devices) for devices in GROWTH] + [(number, LARGE) for number in (10, 100, MANY)]
    for number, devices in sizes:
        made = list(factories("dirichlet", number, rng, devices))
        taken = sum(measured(GBPCS(), made)[1])
        table.add_row(f"{number:,}", str(devices), f"{taken:.3f}", f"{1e3 * taken / number:.2f}")
    return table


def main() -> None:
    """Measure, and print four tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--factories", type=int, default=200, help="Factories of each kind.")
    parser.add_argument("--slow", type=int, default=20, help="Of these, for selectors that take long.")
    options = parser.parse_args()
    console = Console(width=140)
    console.print(f"threads: {os.environ.get('OMP_NUM_THREADS', 'all')}; load before: {os.getloadavg()[0]:.1f}")
    number = options.factories
    for table in (quality(number, min(options.slow, number)), ways(number), against_products(), growth()):
        console.print(table)


if __name__ == "__main__":
    main()
