"""Makes the tables of docs/claims.md: what protocols reached, what it cost, and what follows for the papers' claims.

``python docs/claims/tables.py RUN_DIR ...`` takes the evaluated rounds of finished runs of
scenarios/paper/claims_*.yaml into ``rounds/`` here; without a run, it makes the other tables from those again.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import fedsim
from fedsim.experiment.compare import difference, summary_at
from fedsim.metrics.intervals import CONFIDENCE, half_width
from fedsim.metrics.tables import CUMULATIVE
from fedsim.paper.published import published
from fedsim.units import TIB_BYTES

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE.parents[1] / "scenarios/paper"
KEPT = ["protocol", "seed", "round", *CUMULATIVE]
SCORES = ["accuracy", "loss", "accuracy_unseen", "loss_unseen"]
OVER_ROUNDS = (15, 20, 25, 50, 75, 100)
TARGETS = (0.5, 0.6, 0.65, 0.7)
TEST_SETS = {"final_accuracy": "pooled", "final_accuracy_unseen": "unseen"}
VERDICTS = {1: "confirmed", 0: "undecided", -1: "contradicted"}
BETWEEN = "between evaluations"
CHEAP = "hfedms_d"  # all of its rounds are the budget of bytes
SYSTEMS = {"FedAvg": "fedavg", "FedProx": "fedprox", "HFedMS-S": "hfedms_s", "HFedMS-D": "hfedms_d"}
TABLE3 = {"final_accuracy": "%", "loss": "loss"}
TABLE4 = {"rounds": "rounds", "transfer_bytes": "TiB", "sim_time_s": "hours"}
TABLE4_NAMES = {"HFedMS-D": "HFedMS-D T=5"}
Rounds = dict[str, pd.DataFrame]
"""Scenario, or data set -> its evaluated rounds."""


class Claim(NamedTuple):
    """One protocol is more accurate than another, at equal rounds or at equal bytes, on some data sets."""

    source: str
    better: str
    worse: str
    at: str
    data: tuple[str, ...]


STREAMS, SKEW = ("femnist", "glyphs"), ("skew",)
CLAIMS = (
    Claim("HFedMS Table III", "hfedms_d", "fedavg", "rounds", STREAMS),
    Claim("HFedMS Table III", "hfedms_d", "fedprox", "rounds", STREAMS),
    Claim("HFedMS Table IV", "hfedms_s", "fedavg", "rounds", STREAMS),
    Claim("HFedMS IV-B f", "hfedms_d", "hfedms_s", "rounds", STREAMS),
    Claim("HFedMS Table IV", "hfedms_d", "fedavg", "bytes", STREAMS),
    Claim("HFedMS Table IV", "hfedms_d", "fedprox", "bytes", STREAMS),
    Claim("HFedMS Fig. 10", "hfedms_d", "hfedms_s", "bytes", STREAMS),
    Claim("HFedMS Fig. 9b", "hfedms_d", "no SCC", "rounds", STREAMS),
    Claim("HFedMS Fig. 9b", "hfedms_d", "no compensation", "rounds", STREAMS),
    Claim("HFedMS Fig. 9b", "no SCC", "no compensation", "rounds", STREAMS),
    Claim("HFedMS Fig. 9b", "hfedms_s", "no compensation", "bytes", STREAMS),
    Claim("HFedMS Fig. 9b", "oracle", "hfedms_d", "rounds", STREAMS),
    Claim("HFedMS Fig. 7a", "naive_gsp", "fedavg", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "naive_gsp_icg", "naive_gsp", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "50 groups by ICG", "50 random groups", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "fedgsp", "fedgsp without ICG", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "fedgsp", "naive_gsp_icg", "rounds", SKEW),
    Claim("FedGSP Table 1", "fedgsp", "fedavg", "rounds", SKEW),
)


def tables(kept: Rounds) -> dict[str, pd.DataFrame]:
    """Every table that follows from the evaluated rounds of the scenarios, by the name of its file."""
    rounds = {data: kept[f"claims-{data}"] for data in (*STREAMS, *SKEW)}
    small = {"glyphs": kept["fedgsp-fig3-small"], "3 classes each": rounds["skew"]}
    judgements = verdicts(rounds)
    made = {
        "verdicts.csv": judgements,
        "in_short.csv": in_short(judgements),
        "chance.csv": chance(judgements),
        "hfedms_table3.csv": beside_table3(rounds),
        "hfedms_table4.csv": beside_table4(rounds),
        "fedgsp_table1.csv": beside_table1(small),
        "compensation.csv": over_rounds(rounds, [("no compensation", "no SCC"), ("hfedms_d", "no compensation")]),
    }
    for data, table in rounds.items():
        made[f"{data}_equal_rounds.csv"] = reached(table, "rounds")
        if CHEAP in set(table["protocol"]):
            made[f"{data}_equal_bytes.csv"] = reached(table, "bytes")
        made[f"{data}_targets.csv"] = targets(table)
    return made


def spent(rounds: pd.DataFrame, at: str, generous_to: str | None = None) -> pd.DataFrame:
    """Each run within the budget: all rounds, or the bytes of all of HFedMS-D's rounds on the same seed.

    One protocol may be given a little more: as many bytes as its first evaluation beyond the budget took.
    """
    if at == "rounds":
        return summary_at(rounds)
    budgets = rounds[rounds["protocol"] == CHEAP].groupby("seed")["transfer_bytes"].max()
    return pd.concat(
        summary_at(run, ("transfer_bytes", _more(run, budgets[seed]) if protocol == generous_to else budgets[seed]))
        for (protocol, seed), run in rounds.groupby(["protocol", "seed"], sort=False)
    )


def _more(run: pd.DataFrame, budget: float) -> float:
    beyond = run.loc[run["transfer_bytes"] > budget, "transfer_bytes"]
    return budget if beyond.empty else float(beyond.min())


def reached(rounds: pd.DataFrame, at: str) -> pd.DataFrame:
    """Accuracy of each protocol within the budget, in per cent, with half the width of the 95 % interval."""
    rows = []
    for protocol, runs in spent(rounds, at).groupby("protocol", sort=False):
        known = runs.dropna(subset=["loss"])
        row = {"protocol": protocol, "seeds": len(known), **costs(known, ""), "loss": f"{known['loss'].mean():.3f}"}
        for score in scores(known):
            row[f"{TEST_SETS[score]}, %"] = f"{100 * known[score].mean():.1f}"
            row[f"+/- {TEST_SETS[score]}"] = f"{100 * half_width(known[score].to_list()):.1f}"
        rows.append(row)
    return pd.DataFrame(rows)


def targets(rounds: pd.DataFrame) -> pd.DataFrame:
    """What it cost to reach targets: means over the seeds that did.

    *seeds* is how many those are; *too late* had an evaluation at or above the target, but not the three after it that
    confirm it, and none of the cost.
    """
    rows = []
    for target in TARGETS:
        for protocol, runs in summary_at(rounds, target=target).groupby("protocol", sort=False):
            there = runs.dropna(subset=["rounds_to_target"])
            late = int((runs["best_accuracy"] >= target).sum()) - len(there)
            row = {"target, %": f"{100 * target:.0f}", "protocol": protocol}
            row |= {"seeds": f"{len(there)} of {len(runs)}", "too late": str(late) if late else ""}
            rows.append(row | costs(there, "_to_target"))
    return pd.DataFrame(rows)


def beside_table3(rounds: Rounds) -> pd.DataFrame:
    """HFedMS Table III on streams, after 500 rounds, beside our 100 rounds: accuracies in per cent, and losses."""
    return pd.DataFrame(
        {"system": system, **printed_numbers("hfedms_table3", system, TABLE3)}
        | {
            f"{data}, {quantity}": value
            for data in STREAMS
            for quantity, value in ours(summary_at(rounds[data]), protocol).items()
        }
        for system, protocol in SYSTEMS.items()
    )


def beside_table1(small: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """FedGSP Table 1, on FEMNIST after 500 rounds, beside our 40 rounds of a small CNN on other data."""
    return pd.DataFrame(
        {"system": system, **printed_numbers("fedgsp_table1", system, TABLE3)}
        | {
            f"{data}, {quantity}": value
            for data, rounds in small.items()
            for quantity, value in ours(summary_at(rounds), protocol).items()
        }
        for system, protocol in {"FedAvg": "fedavg", "FedGSP": "fedgsp"}.items()
    )


def beside_table4(rounds: Rounds) -> pd.DataFrame:
    """HFedMS Table IV, what 70 % cost, beside the first evaluation at or above 70 % here, over the seeds that have one.

    That is no confirmed target: the paper does not say by which rule it reads one off its curves.
    """
    return pd.DataFrame(
        {"system": system, **printed_numbers("hfedms_table4", printed, TABLE4)}
        | {
            f"{data}, {quantity}": value
            for data in STREAMS
            for quantity, value in first_at(rounds[data][rounds[data]["protocol"] == protocol], 0.7).items()
        }
        for system, protocol in SYSTEMS.items()
        for printed in [TABLE4_NAMES.get(system, system)]
    )


def printed_numbers(table: str, system: str, metrics: dict[str, str]) -> dict[str, str]:
    """The paper's numbers of one system; empty where it has none."""
    numbers = published(table)
    values = numbers[numbers["system"] == system].set_index("metric")["value"]
    return {f"paper, {title}": f"{values[metric]:g}" if metric in values else "" for metric, title in metrics.items()}


def ours(summary: pd.DataFrame, protocol: str) -> dict[str, str]:
    runs = summary[summary["protocol"] == protocol]
    accuracies = runs["final_accuracy"].to_list()
    mean, half = 100 * float(np.mean(accuracies)), 100 * half_width(accuracies)
    interval = "" if math.isnan(half) else f" +/- {half:.1f}"
    return {"%": f"{mean:.1f}{interval}", "loss": f"{runs['loss'].mean():.3f}"}


def first_at(rounds: pd.DataFrame, accuracy: float) -> dict[str, str]:
    first = rounds[rounds["accuracy"] >= accuracy].groupby("seed").head(1)
    means = {"rounds": first["round"], "TiB": first["transfer_bytes"] / TIB_BYTES, "hours": first["sim_time_s"] / 3600}
    known = {name: significant(values.mean()) for name, values in means.items()}
    return {"seeds": f"{len(first)} of {rounds['seed'].nunique()}", **known}


def over_rounds(rounds: Rounds, pairs: list[tuple[str, str]]) -> pd.DataFrame:
    """By how many points the first of each pair is ahead of the other as rounds go by, on the pooled test set."""
    rows = []
    for data in STREAMS:
        for number in OVER_ROUNDS:
            row: dict[str, Any] = {"data": data, "round": number}
            for one, other in pairs:
                found = difference(summary_at(rounds[data], ("round", number)), one, other)
                row[f"{one} - {other}, points"] = f"{100 * found.mean:+.1f} +/- {100 * found.half_width:.1f}"
            rows.append(row)
    return pd.DataFrame(rows)


def costs(runs: pd.DataFrame, ending: str) -> dict[str, str]:
    """Means of rounds, time and bytes: in all, or to the target; empty for no runs."""
    time_s, transfer_bytes = ("time_to_target_s", "bytes_to_target") if ending else ("sim_time_s", "transfer_bytes")
    scaled = {"rounds": runs[f"rounds{ending}"], "hours": runs[time_s] / 3600, "GB": runs[transfer_bytes] / 1e9}
    return {name: significant(values.mean()) for name, values in scaled.items()}


def verdicts(rounds: Rounds) -> pd.DataFrame:
    """Every claim on every data set: confirmed or contradicted where the interval of paired differences excludes zero.

    At equal bytes a verdict has to hold too when either of the two is given its next evaluation, beyond the budget;
    where it does not, it lies "between evaluations".
    """
    return pd.DataFrame(judged(claim, data, rounds[data]) for claim in CLAIMS for data in claim.data)


def judged(claim: Claim, data: str, rounds: pd.DataFrame) -> dict[str, Any]:
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


def in_short(judgements: pd.DataFrame) -> pd.DataFrame:
    """A row for each claim: its verdict where that is one on all data and all test sets, else "mixed".

    Beside it stand the differences on the pooled test set; of a mixed claim, those on every test set with verdicts.
    """
    rows = []
    for (claim, at), found in judgements.groupby(["claim", "at equal"], sort=False):
        given = {row[f"{test} verdict"] for _, row in found.iterrows() for test in tested(row)}
        verdict = given.pop() if len(given) == 1 else "mixed"
        seeds = found["seeds"].unique()
        assert len(seeds) == 1, claim
        row = {"verdict": verdict, "claim": claim, "source": found["source"].iloc[0], "at equal": at, "seeds": seeds[0]}
        rows.append(row | {each["data"]: told(each, whole=verdict == "mixed") for _, each in found.iterrows()})
    return pd.DataFrame(rows, columns=["verdict", "claim", "source", "at equal", "seeds", *STREAMS, *SKEW])


def told(judgement: pd.Series, whole: bool) -> str:
    """The difference on the pooled test set, or, *whole*, on every test set with its verdict."""
    points = {test: f"{judgement[f'{test}, points']} +/- {judgement[f'+/- {test}']}" for test in tested(judgement)}
    if not whole:
        return points["pooled"]
    return "; ".join(f"{test} {points[test]} ({judgement[f'{test} verdict']})" for test in points)


def chance(judgements: pd.DataFrame) -> pd.DataFrame:
    """How many verdicts of which kind there are, and how many would be false by chance if no difference were real."""
    rows = []
    for title, tests in {**{test: [test] for test in TEST_SETS.values()}, "both": [*TEST_SETS.values()]}.items():
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
    return f"{value:.{max(digits - 1 - math.floor(math.log10(value)), 0)}f}"


# -- files ------------------------------------------------------------------------------------------------------------


def kept_rounds() -> Rounds:
    """The evaluated rounds that are kept here, by scenario."""
    return {path.stem: pd.read_csv(path) for path in sorted((HERE / "rounds").glob("*.csv"))}


def keep_rounds(folders: Sequence[str]) -> None:
    """Take over the evaluated rounds of whole runs of scenarios/paper, one file for each."""
    for folder in folders:
        results = fedsim.load_results(folder)
        rounds, name = results.rounds, results.name
        scenario = fedsim.load(SCENARIOS / f"{name.replace('-', '_')}.yaml")
        expected = {(each.title, seed, scenario.stop.rounds) for each in scenario.protocols for seed in scenario.seeds}
        last = rounds.groupby(["protocol", "seed"])["round"].max().reset_index()
        if unlike := expected ^ set(last.itertuples(index=False, name=None)):
            raise SystemExit(f"{folder} is no whole run of {name}: {sorted(unlike)[0]} is in one of them only")
        kept = rounds[[*KEPT, *(score for score in SCORES if score in rounds)]].dropna(subset=["accuracy"])
        write(f"rounds/{name}.csv", kept.assign(sim_time_s=kept["sim_time_s"].round(3)).round(6))


def write(name: str, table: pd.DataFrame) -> None:
    (HERE / name).write_text(table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline="")
    print(HERE / name)


if __name__ == "__main__":
    keep_rounds(sys.argv[1:])
    for name, table in tables(kept_rounds()).items():
        write(name, table)
