"""What protocols reached within a budget, and whether a claim that one is more accurate than another came out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import pandas as pd

from fedsim.experiment.compare import Spent, difference, summary_at
from fedsim.metrics.intervals import CONFIDENCE, half_width

TARGETS = (0.5, 0.6, 0.65, 0.7)
TEST_SETS = {"final_accuracy": "pooled", "final_accuracy_unseen": "unseen", "final_accuracy_mean": "by client"}
VERDICTS = {1: "confirmed", 0: "undecided", -1: "contradicted"}
BETWEEN = "between evaluations"


class Budget(NamedTuple):
    """What all rounds of a protocol cost, on the same seed: as much may every protocol spend."""

    column: Spent
    protocols: tuple[str, ...]
    """The first of them that took part."""


BUDGETS = {
    "bytes": Budget("transfer_bytes", ("hfedms_d",)),
    "time": Budget("sim_time_s", ("fedgs", "hfedms_d", "fedavg")),
    "bytes on air": Budget("transfer_bytes", ("fedavg",)),
    "bytes on backhaul": Budget("backbone_bytes", ("fedgs",)),
}
"""At equal what -> its budget, the cheapest protocol's. At equal *rounds* there is none: whole runs are compared."""


class Claim(NamedTuple):
    """One protocol is more accurate than another, at equal rounds or within a budget, on some data sets."""

    source: str
    better: str
    worse: str
    at: str
    data: tuple[str, ...]


def spent(rounds: pd.DataFrame, at: str, generous_to: str | None = None) -> pd.DataFrame:
    """Each run within the budget: all its rounds, or what another protocol's rounds cost on the same seed.

    One protocol may be given a little more: as much as its first evaluation beyond the budget took.
    """
    if at == "rounds":
        return summary_at(rounds)
    column, protocols = BUDGETS[at]
    cheapest = next(protocol for protocol in protocols if (rounds["protocol"] == protocol).any())
    budgets = rounds[rounds["protocol"] == cheapest].groupby("seed")[column].max()
    return pd.concat(
        summary_at(run, (column, _more(run[column], budgets[seed]) if protocol == generous_to else budgets[seed]))
        for (protocol, seed), run in rounds.groupby(["protocol", "seed"], sort=False)
    )


def _more(evaluated: pd.Series, budget: float) -> float:
    beyond = evaluated[evaluated > budget]
    return budget if beyond.empty else float(beyond.min())


def reached(rounds: pd.DataFrame, at: str) -> pd.DataFrame:
    """Accuracy of each protocol within the budget, in per cent, with half the width of the 95 % interval.

    The half width is empty where there is one seed.
    """
    rows = []
    for protocol, runs in spent(rounds, at).groupby("protocol", sort=False):
        known = runs.dropna(subset=["loss"])
        row = {"protocol": protocol, "seeds": len(known), **costs(known), "loss": f"{known['loss'].mean():.3f}"}
        for score in scores(known):
            row[f"{TEST_SETS[score]}, %"] = f"{100 * known[score].mean():.1f}"
            half = 100 * half_width(known[score].to_list())
            row[f"+/- {TEST_SETS[score]}"] = "" if math.isnan(half) else f"{half:.1f}"
        rows.append(row)
    return pd.DataFrame(rows)


def targets(rounds: pd.DataFrame, chosen: Sequence[float] = TARGETS) -> pd.DataFrame:
    """What it cost to reach the *chosen* targets: means over the seeds that did.

    *seeds* is how many those are; *too late* had an evaluation at or above the target, but not the three after it that
    confirm it, and none of the cost.
    """
    rows = []
    for target in chosen:
        for protocol, runs in summary_at(rounds, target=target).groupby("protocol", sort=False):
            there = runs.dropna(subset=["rounds_to_target"])
            late = int((runs["best_accuracy"] >= target).sum()) - len(there)
            row = {"target, %": f"{100 * target:.0f}", "protocol": protocol}
            row |= {"seeds": f"{len(there)} of {len(runs)}", "too late": str(late) if late else ""}
            rows.append(row | costs_to_target(there))
    return pd.DataFrame(rows)


def costs(runs: pd.DataFrame) -> dict[str, str]:
    """Means of rounds, time and bytes in all; those of the backhaul where they were kept. Empty for no runs."""
    found = _costs(runs["rounds"], runs["sim_time_s"], runs["transfer_bytes"])
    backhaul = runs["backbone_bytes"].dropna() / 1e9
    return found if backhaul.empty else {**found, "GB on backhaul": significant(backhaul.mean())}


def costs_to_target(runs: pd.DataFrame) -> dict[str, str]:
    """Means of rounds, time and bytes to the target; empty for no runs."""
    return _costs(runs["rounds_to_target"], runs["time_to_target_s"], runs["bytes_to_target"])


def _costs(rounds: pd.Series, time_s: pd.Series, transfer_bytes: pd.Series) -> dict[str, str]:
    scaled = {"rounds": rounds, "hours": time_s / 3600, "GB": transfer_bytes / 1e9}
    return {name: significant(values.mean()) for name, values in scaled.items()}


def judged(claim: Claim, data: str, rounds: pd.DataFrame) -> dict[str, Any]:
    """The claim is confirmed or contradicted where the interval of paired differences excludes zero.

    Within a budget a verdict has to hold too when either of the two is given its next evaluation, beyond the budget;
    where it does not, it lies "between evaluations".
    """
    row = {"data": data, "claim": f"{claim.better} > {claim.worse}", "source": claim.source, "at equal": claim.at}
    budgets = [spent(rounds, claim.at, generous_to=one) for one in (None, claim.worse, claim.better)]
    for score in scores(budgets[0]):
        found = [difference(runs, claim.better, claim.worse, score) for runs in budgets]
        signs = {difference.sign for difference in found}
        row |= {
            "seeds": found[0].n,
            f"{TEST_SETS[score]}, points": f"{100 * found[0].mean:+.1f}",
            f"+/- {TEST_SETS[score]}": f"{100 * found[0].half_width:.1f}",
            f"{TEST_SETS[score]} verdict": VERDICTS[signs.pop()] if len(signs) == 1 else BETWEEN,
        }
    return row


def in_short(judgements: pd.DataFrame, data: Sequence[str]) -> pd.DataFrame:
    """A row for each claim on *data*: its verdict where that is one on all of them and all test sets, else "mixed".

    Beside it stand the differences on the pooled test set; of a mixed claim, those on every test set with verdicts.
    """
    rows = []
    on_these = judgements[judgements["data"].isin(data)]
    for (claim, at), found in on_these.groupby(["claim", "at equal"], sort=False):
        given = {row[f"{test} verdict"] for _, row in found.iterrows() for test in tested(row)}
        verdict = given.pop() if len(given) == 1 else "mixed"
        seeds = found["seeds"].unique()
        assert len(seeds) == 1, claim
        row = {"verdict": verdict, "claim": claim, "source": found["source"].iloc[0], "at equal": at, "seeds": seeds[0]}
        rows.append(row | {each["data"]: told(each, whole=verdict == "mixed") for _, each in found.iterrows()})
    return pd.DataFrame(rows, columns=["verdict", "claim", "source", "at equal", "seeds", *data])


def told(judgement: pd.Series, whole: bool) -> str:
    """The difference on the pooled test set, or, *whole*, on every test set with its verdict."""
    points = {test: f"{judgement[f'{test}, points']} +/- {judgement[f'+/- {test}']}" for test in tested(judgement)}
    if not whole:
        return points["pooled"]
    if len(points) == 1:
        return f"{points['pooled']} ({judgement['pooled verdict']})"
    return "; ".join(f"{test} {points[test]} ({judgement[f'{test} verdict']})" for test in points)


def against_all(
    judgements: pd.DataFrame, systems: Sequence[str], competitors: Sequence[str], data: Sequence[str]
) -> pd.DataFrame:
    """A row for each system, budget, data set and test set: its claims against all *competitors* that it has there.

    Confirmed where it is confirmed against each of them, contradicted where it is against one, else undecided.
    """
    rows = []
    sides = judgements["claim"].str.split(" > ", expand=True)
    chosen = judgements.assign(system=sides[0], competitor=sides[1])
    chosen = chosen[chosen["competitor"].isin(competitors) & chosen["data"].isin(data)]
    for (system, at, on), found in chosen.groupby(["system", "at equal", "data"], sort=False):
        for test in tested(found.iloc[0]) if system in systems else ():
            given = found.groupby(f"{test} verdict")["competitor"].agg("; ".join)
            against_each = [*given.index] == ["confirmed"]
            verdict = "contradicted" if "contradicted" in given else "confirmed" if against_each else "undecided"
            row = {"claim": f"{system} > all {len(found)}", "at equal": at, "data": on, "tests": test}
            rows.append(
                row | {"verdict": verdict} | {each: given.get(each, "") for each in (*VERDICTS.values(), BETWEEN)}
            )
    return pd.DataFrame(rows)


def chance(judgements: pd.DataFrame) -> pd.DataFrame:
    """How many verdicts of which kind there are, and how many would be false by chance if no difference were real."""
    rows = []
    for title, tests in {**{test: [test] for test in TEST_SETS.values()}, "all": [*TEST_SETS.values()]}.items():
        given = pd.concat([judgements[f"{test} verdict"] for test in tests]).dropna()
        row = {"test set": title, "verdicts": len(given), "false by chance": f"{(1 - CONFIDENCE) * len(given):.1f}"}
        rows.append(row | {verdict: int((given == verdict).sum()) for verdict in (*VERDICTS.values(), BETWEEN)})
    return pd.DataFrame(rows)


def tested(judgement: pd.Series) -> list[str]:
    """The test sets that a judgement is about."""
    return [test for test in TEST_SETS.values() if pd.notna(judgement.get(f"{test} verdict"))]


def scores(summary: pd.DataFrame) -> list[str]:
    return [score for score in TEST_SETS if score in summary]


def significant(value: float, digits: int = 3) -> str:
    """*value* with so many digits that count, and no exponent; nothing for what is not there.

    >>> significant(0.05526), significant(1257.3), significant(34.0), significant(math.nan)
    ('0.0553', '1257', '34.0', '')
    """
    if math.isnan(value):
        return ""
    if value == 0:
        return "0"
    return f"{value:.{max(digits - 1 - math.floor(math.log10(value)), 0)}f}"
