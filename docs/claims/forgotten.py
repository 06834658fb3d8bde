"""HFedMS's Fig. 9a: how the accuracy on batches that have passed goes on, from the rows of forgetting.csv."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from judging import VERDICTS

from fedsim.experiment.compare import difference
from fedsim.metrics.intervals import half_width

PASSED = 21
"""The round of the batches: the first of a block of T = 5, so a full one."""
LATER = (22, 25, 30, 100)
"""Rounds that are compared with it."""


def over_rounds(passed: pd.DataFrame) -> pd.DataFrame:
    """A row for each round: accuracy in per cent on the passed batches, and on pooled tests, of each protocol.

    Means over the seeds with half the width of their 95 % intervals.
    """
    rows = []
    for number, at in passed.groupby("round"):
        row: dict[str, object] = {"round": number}
        for protocol, runs in at.groupby("protocol", sort=False):
            for tests in ("passed", "pooled"):
                points = (100 * runs[tests]).to_list()
                row[f"{protocol}, {tests}, %"] = f"{sum(points) / len(points):.1f} +/- {half_width(points):.1f}"
        rows.append(row)
    return pd.DataFrame(rows)


def changes(passed: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """By how many points more the first of each pair has gained since the batches, on those and on pooled tests.

    A gain *beyond pooled* is that on passed batches less that
    on pooled tests. Differences are paired by seed; the verdict is of the claim that the first has gained more, or lost
    less.
    """
    accuracy = passed.assign(**{"beyond pooled": passed["passed"] - passed["pooled"]}).set_index(["protocol", "seed"])
    begun = accuracy[accuracy["round"] == PASSED]
    rows = []
    for tests in ("passed", "pooled", "beyond pooled"):
        for number in LATER:
            gains = 100 * (accuracy[accuracy["round"] == number][tests] - begun[tests])
            table = gains.rename("gain").reset_index().assign(accounting="event")
            for one, other in pairs:
                found = difference(table, one, other, "gain")
                row = {"on": tests, "round": number, "claim": f"{one} > {other}", "seeds": found.n}
                row |= {which: _points(gains[name]) for which, name in (("first", one), ("second", other))}
                row |= {"difference, points": f"{found.mean:+.1f}", "+/-": f"{found.half_width:.1f}"}
                rows.append(row | {"verdict": VERDICTS[found.sign]})
    return pd.DataFrame(rows)


def ahead(passed: pd.DataFrame, numbers: Sequence[int], one: str, other: str) -> pd.DataFrame:
    """By how many points *one* is more accurate than *other* after some rounds, paired by seed, with a verdict."""
    rows = []
    for number in numbers:
        row: dict[str, object] = {"claim": f"{one} > {other}", "round": number}
        at = passed[passed["round"] == number].assign(accounting="event")
        for tests in ("pooled", "passed"):
            found = difference(at, one, other, tests)
            row |= {"seeds": found.n, f"{tests}, points": f"{100 * found.mean:+.1f} +/- {100 * found.half_width:.1f}"}
            row |= {f"{tests} verdict": VERDICTS[found.sign]}
        rows.append(row)
    return pd.DataFrame(rows)


def _points(gains: pd.Series) -> str:
    return f"{gains.mean():+.1f} +/- {half_width(gains.to_list()):.1f}"
