"""Makes the tables of docs/claims.md and docs/claims_tables.md: what protocols reached, what it cost, and what follows.

``python docs/claims/tables.py RUN_DIR ...`` takes the evaluated rounds of finished runs of
scenarios/paper/claims_*.yaml into ``rounds/`` here; without a run, it makes the other tables from those again.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from competitors import CONTESTS, FEDGS, STATIC, TUNED_STREAMS, beside_all, ends_of, grids
from flexifed import by_model, by_study, speed_ups
from forgotten import ahead, changes, over_rounds
from judging import BUDGETS, TARGETS, Claim, against_all, chance, in_short, judged, reached, significant, targets

import fedsim
from fedsim.experiment.compare import Spent, difference, summary_at
from fedsim.experiment.compare_device_classes import device_rounds
from fedsim.experiment.remarks_after import diverged_at
from fedsim.metrics.intervals import half_width
from fedsim.metrics.tables import CUMULATIVE
from fedsim.paper.published import published
from fedsim.scenario.schema import Scenario
from fedsim.units import TIB_BYTES

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE.parents[1] / "scenarios/paper"
KEPT = ["protocol", "seed", "round", *CUMULATIVE]
KEPT_OF_CLASSES = ["protocol", "seed", "round", "device_class", "sim_time_s", "transfer_bytes", "accuracy", "loss"]
SCORES = ["accuracy", "loss", "accuracy_unseen", "loss_unseen"]
OWN_SCORES = ("claims-spatl", "claims-spatl-tuned", "claims-spatl-arms")
"""Runs whose papers count each client's accuracy on its own tests once."""
SYSTEMS = {"FedAvg": "fedavg", "FedProx": "fedprox", "HFedMS-S": "hfedms_s", "HFedMS-D": "hfedms_d"}
ENDS = {"final_accuracy": "%", "loss": "loss"}
TABLE4 = {"rounds": "rounds", "transfer_bytes": "TiB", "sim_time_s": "hours"}
TABLE4_NAMES = {"HFedMS-D": "HFedMS-D T=5"}
Rounds = dict[str, pd.DataFrame]
"""Scenario, or data set -> its evaluated rounds."""

STREAMS, SKEW = ("femnist", "glyphs"), ("skew",)
TUNED, TUNED_TARGETS = (*TUNED_STREAMS, *STATIC), (0.6, 0.7, 0.8)
"""Where each system has the best learning rates of a grid, and all competitors take part."""
OWN, DIRICHLET = ("iid",), ("dirichlet",)
"""Whose "pooled" test set is all clients' own test samples, each for its client's own model."""
SCENARIO_OF = {data: f"claims-{data}" for data in (*STREAMS, *SKEW)} | {
    "writers": "claims-fedgs-femnist",
    "three classes": "claims-fedgs-skew",
    "iid": "claims-flexifed",
    "dirichlet": "claims-spatl",
    "femnist, tuned": "competitors-stream-femnist",
    "glyphs, tuned": "competitors-stream-glyphs",
    "femnist, static": "competitors-static-femnist",
    "glyphs, static": "competitors-static-glyphs",
}
MORE_OF: dict[str, tuple[str, ...]] = {
    **{data: (f"claims-{data}-oracle",) for data in STREAMS},
    "writers": ("competitors-fedgs-femnist",),
    "three classes": ("competitors-fedgs-skew", "competitors-fedgs-skew-once"),
    "glyphs, static": ("competitors-static-glyphs-once",),
    "dirichlet": ("claims-spatl-tuned",),
}
"""Comparisons whose systems stand in several scenarios -> the others."""
FINER = {
    "bytes": {data: f"claims-{data}-bytes" for data in STREAMS},
    "time": {data: f"claims-{data}-time" for data in SKEW},
    "bytes on air": {"writers": "claims-fedgs-femnist-air", "three classes": "claims-fedgs-skew-air"},
}
"""At equal what -> comparisons with a scenario that evaluates some of their systems in each round."""
AXES: dict[str, Spent] = {
    "rounds": "round",
    **{at: BUDGETS[at].column for at in ("time", "bytes on air", "bytes on backhaul")},
}
FEDGS_CLAIMS = tuple(
    Claim(source, "fedgs", other, at, FEDGS)
    for source, other in [
        ("FedGS Table II", "fedavg"),
        ("FedGS Table II", "fedavg, as many steps"),
        ("FedGS Table II", "fedadam"),
        ("FedGS section IV", "fedgs_random"),
    ]
    for at in AXES
    if at == "rounds" or other != "fedgs_random"  # the two cost the same, but for the counts of classes
)
FEDGS_CLAIMS += (Claim("FedGS section IV", "fedgs_random", "fedavg, as many steps", "rounds", FEDGS),)
FLEXIFED_CLAIMS = (
    Claim("FlexiFed Table 1", "basic", "standalone", "rounds", OWN),
    Claim("FlexiFed Table 1", "clustered", "clustered_fl", "rounds", OWN),
    Claim("FlexiFed Table 1", "max", "clustered", "rounds", OWN),
    Claim("FlexiFed Table 1", "max", "clustered_fl", "rounds", OWN),
)
SPATL_CLAIMS = tuple(
    Claim(source, "spatl", other, at, DIRICHLET)
    for source, other in [
        ("SPATL Table II", "fedavg"),
        ("fair baseline", "fedper"),
        ("fair baseline", "fedavg, fine-tuned"),
    ]
    for at in ("rounds", "bytes on air")
)
SPATL_CLAIMS += (Claim("fair baseline", "fedper", "fedavg", "rounds", DIRICHLET),)
FLEXIFED = {"iid": "claims-flexifed", "shards": "claims-flexifed-shards"}
"""Shards -> scenario. Two shards for each client have one seed only, and so no verdict."""
ONE_RATE_CLAIMS = (
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
    Claim("HFedMS Fig. 9b", "hfedms_s", "no compensation", "rounds", STREAMS),
    Claim("HFedMS Fig. 9b", "hfedms_s", "no compensation", "bytes", STREAMS),
    Claim("HFedMS Fig. 9b", "oracle", "hfedms_d", "rounds", STREAMS),
    Claim("HFedMS Fig. 9b", "oracle, random", "hfedms_d", "rounds", STREAMS),
    Claim("HFedMS Fig. 7a", "naive_gsp", "fedavg", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "naive_gsp_icg", "naive_gsp", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "50 groups by ICG", "50 random groups", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "fedgsp", "fedgsp without ICG", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "fedgsp", "naive_gsp_icg", "rounds", SKEW),
    Claim("FedGSP Fig. 3b", "fedgsp", "naive_gsp_icg", "time", SKEW),
    Claim("FedGSP Table 1", "fedgsp", "fedavg", "rounds", SKEW),
    Claim("FedGSP Table 1", "fedgsp", "fedavg", "time", SKEW),
)
"""With the papers' learning rate for all systems."""
TUNED_CLAIMS = (
    *(Claim("HFedMS IV-B f", "hfedms_d", "hfedms_s", at, TUNED_STREAMS) for at in ("rounds", "bytes", "time")),
    *(
        Claim(source, better, worse, at, STATIC)
        for source, better, worse in [
            ("HFedMS Fig. 7a", "naive_gsp", "fedavg"),
            ("FedGSP Fig. 3b", "naive_gsp_icg", "naive_gsp"),
            ("FedGSP Fig. 3b", "fedgsp", "naive_gsp"),
            ("FedGSP Fig. 3b", "fedgsp", "naive_gsp_icg"),
        ]
        for at in ("rounds", "time")
    ),
)
CONTEST_CLAIMS = tuple(claim for contest in CONTESTS.values() for claim in contest.claims)
"""Each paper's systems against each of its competitors; FEDGS_CLAIMS has two of FedGS's as well."""
CLAIMS = (
    *ONE_RATE_CLAIMS,
    *FEDGS_CLAIMS,
    *FLEXIFED_CLAIMS,
    *SPATL_CLAIMS,
    *TUNED_CLAIMS,
    *(claim for claim in CONTEST_CLAIMS if claim[:4] not in {known[:4] for known in FEDGS_CLAIMS}),
)


def tables(kept: Rounds, classes: Rounds) -> dict[str, pd.DataFrame]:
    """Every table that follows from the evaluated rounds of the scenarios, and of their device *classes*, by file."""
    rounds = {data: kept[scenario] for data, scenario in SCENARIO_OF.items()}
    for data, others in MORE_OF.items():
        rounds[data] = pd.concat([rounds[data], *(kept[name][rounds[data].columns] for name in others)])
    flexifed = {data: kept[name] for data, name in FLEXIFED.items()}
    finely = {at: {data: kept[name] for data, name in more.items()} for at, more in FINER.items()}
    judgements = verdicts(rounds, finely)
    passed = pd.read_csv(HERE / "forgetting.csv")
    made = {
        "verdicts.csv": judgements,
        **said_in_short(judgements),
        **of_contests(judgements),
        "fedgs_verdicts.csv": of_these(judgements, FEDGS_CLAIMS),
        "fedgs_iterations.csv": iterations(kept),
        "fedgs_fig5a.csv": grid(kept["fedgs-fig5-small"], r"T=(?P<T>\d+) n=(?P<n>\d+)"),
        "fedgs_fig7c.csv": grid(kept["fedgs-fig7-small"], r"server (?P<server>\S+), clients (?P<clients>\S+)"),
        "spatl_arms.csv": pd.concat(
            reached(kept["claims-spatl-arms"], at).filter(regex=r"^(?!\+/-)").assign(**{"at equal": at})
            for at in ("rounds", "bytes on air")
        ),
        "stream_course.csv": course(kept["competitors-stream-long"], range(50, 301, 50)),
        "forgotten.csv": over_rounds(passed),
        "forgotten_changes.csv": changes(passed, [("hfedms_d", "hfedms_s"), ("hfedms_d", "no SCC")]),
        "scc_tuned.csv": ahead(passed, (20, 40, 60, 80, 100), "hfedms_d", "no SCC"),
        "flexifed_speed_ups.csv": speed_ups(flexifed),
        "flexifed_models.csv": by_model({data: classes[name] for data, name in FLEXIFED.items()}),
        "flexifed_studied.csv": by_study(pd.read_csv(HERE / "flexifed_studies.csv")),
        "chance.csv": chance(judgements),
        "hfedms_table3.csv": beside("hfedms_table3", SYSTEMS, {data: rounds[data] for data in STREAMS}),
        "hfedms_table4.csv": beside_table4(rounds),
        "compensation.csv": as_it_goes(
            {data: rounds[data] for data in STREAMS},
            "round",
            (15, 20, 25, 50, 75, 100),
            [("no compensation", "no SCC"), ("hfedms_d", "no compensation")],
        ),
        "fedgs_selection.csv": as_it_goes(
            {data: rounds[data] for data in FEDGS},
            "round",
            (8, 12, 16, 20, 24, 30, 40, 50, 60),
            [("fedgs", "fedgs_random")],
        ),
        "skew_growth_by_time.csv": as_it_goes(
            {data: finer(rounds[data], finely["time"][data]) for data in SKEW},
            "sim_time_s",
            range(600, 1900, 300),
            [("fedgsp", "naive_gsp_icg")],
        ),
    }
    for name, contest in CONTESTS.items():
        runs = {data: (scenarios_of(data), rounds[data]) for data in contest.data}
        made[f"{name}_competitors.csv"] = beside_all(contest, runs)
        made[f"{name}_rates.csv"] = grids({data: tried_rates(contest.rates[data]) for data in contest.data})
    for data, table in (rounds | {data: kept[SCENARIO_OF[data]] for data in FEDGS}).items():  # others: fedgs_all.csv
        for at in {claim.at: None for claim in CLAIMS if data in claim.data}:
            made[file_of(data, f"equal {at}")] = reached(finer(table, finely.get(at, {}).get(data)), at)
        if data not in (*OWN, *DIRICHLET):  # whose models are below every target
            made[file_of(data, "targets")] = targets(table, TUNED_TARGETS if data in TUNED else TARGETS)
    return made


def verdicts(rounds: Rounds, finely: dict[str, Rounds]) -> pd.DataFrame:
    """Every claim on every data set, `judged`; with the rounds that were evaluated *finely* for its budget."""
    return pd.DataFrame(
        judged(claim, data, finer(rounds[data], finely.get(claim.at, {}).get(data)))
        for claim in CLAIMS
        for data in claim.data
    )


def said_in_short(judgements: pd.DataFrame) -> Rounds:
    """Tables of `in_short`, by file."""
    parts = {
        "in_short.csv": (ONE_RATE_CLAIMS, (*STREAMS, *SKEW)),
        "fedgs_in_short.csv": (FEDGS_CLAIMS, FEDGS),
        "flexifed_in_short.csv": (FLEXIFED_CLAIMS, OWN),
        "spatl_in_short.csv": (SPATL_CLAIMS, DIRICHLET),
        "tuned_in_short.csv": (TUNED_CLAIMS, TUNED),
    }
    return {name: in_short(of_these(judgements, claims), data) for name, (claims, data) in parts.items()}


def of_contests(judgements: pd.DataFrame) -> Rounds:
    """What follows for the claims against all competitors together, by file."""
    return {
        f"{name}_all.csv": against_all(judgements, contest.claimed, [*contest.competitors], contest.data)
        for name, contest in CONTESTS.items()
    }


def of_these(judgements: pd.DataFrame, claims: Sequence[Claim]) -> pd.DataFrame:
    """The judgements of some claims."""
    known = {(f"{claim.better} > {claim.worse}", claim.at, data) for claim in claims for data in claim.data}
    rows = judgements[["claim", "at equal", "data"]].itertuples(index=False, name=None)
    return judgements[[row in known for row in rows]]


def finer(rounds: pd.DataFrame, more: pd.DataFrame | None) -> pd.DataFrame:
    """The evaluated *rounds* of some runs, with those of the same systems and seeds that were evaluated more often."""
    if more is None:
        return rounds
    both = pd.concat([more[rounds.columns], rounds]).drop_duplicates(["protocol", "seed", "round"])
    return both.sort_values("round", kind="stable")


def beside(table: str, systems: dict[str, str], rounds: Rounds) -> pd.DataFrame:
    """A published table of accuracies in per cent and losses, after 500 rounds, beside those at the end of our runs."""
    return pd.DataFrame(
        {"system": system, **printed_numbers(table, system, ENDS)}
        | {
            f"{data}, {quantity}": value
            for data, runs in rounds.items()
            for quantity, value in ours(summary_at(runs), protocol).items()
        }
        for system, protocol in systems.items()
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


def as_it_goes(rounds: Rounds, at: Spent, numbers: Sequence[int], pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """By how many points the first of each pair is ahead of the other as a run goes on, on the pooled test set."""
    rows = []
    for data, runs in rounds.items():
        for number in numbers:
            row: dict[str, Any] = {"data": data, {"round": "round", "sim_time_s": "seconds"}[at]: number}
            for one, other in pairs:
                found = difference(summary_at(runs, (at, number)), one, other)
                row[f"{one} - {other}, points"] = f"{100 * found.mean:+.1f} +/- {100 * found.half_width:.1f}"
            rows.append(row)
    return pd.DataFrame(rows)


def course(rounds: pd.DataFrame, numbers: Sequence[int]) -> pd.DataFrame:
    """Accuracy in per cent of each protocol's one run after some rounds, on each test set."""
    rows = []
    for protocol, runs in rounds.groupby("protocol", sort=False):
        for test, score in (("pooled", "accuracy"), ("unseen", "accuracy_unseen")):
            found = runs.set_index("round")[score]
            rows.append(
                {"protocol": protocol, "tests": test, **{f"round {at}": f"{100 * found[at]:.1f}" for at in numbers}}
            )
    return pd.DataFrame(rows)


def iterations(kept: Rounds) -> pd.DataFrame:
    """FedGS with T = 50 beside T = 10, on the one seed that has both: accuracy in per cent, and after which round.

    Each run stands within what all rounds of FedGS with T = 10 cost: in rounds, in time, and in bytes. Empty for a run
    that was not evaluated by then.
    """
    rows = []
    for data in FEDGS:
        fifty = kept[f"{SCENARIO_OF[data]}-t50"]
        ten = kept[SCENARIO_OF[data]]
        ten = ten[ten["seed"].isin(fifty["seed"]) & ten["protocol"].isin(fifty["protocol"])]
        budget = ten[ten["protocol"] == "fedgs"].max(numeric_only=True)
        for protocol in fifty["protocol"].unique():
            for steps, rounds in {10: ten, 50: fifty}.items():
                row = {"data": data, "protocol": protocol, "T": steps}
                for at, column in AXES.items():
                    [run] = summary_at(rounds[rounds["protocol"] == protocol], (column, budget[column])).itertuples()
                    known = not math.isnan(run.final_accuracy)
                    row[f"equal {at}"] = f"{100 * run.final_accuracy:.1f} ({run.rounds:.0f})" if known else ""
                rows.append(row)
    return pd.DataFrame(rows)


def ends(rounds: Rounds) -> pd.DataFrame:
    """Accuracy in per cent at the end of each protocol's one run, by data set."""
    found = {data: summary_at(runs).set_index("protocol")["final_accuracy"] for data, runs in rounds.items()}
    return pd.DataFrame(found).mul(100).map("{:.1f}".format).add_suffix(", %").reset_index()


def grid(rounds: pd.DataFrame, labels: str) -> pd.DataFrame:
    """`ends` of one data set by the two numbers that *labels* finds in a protocol's label."""
    found = ends({"all": rounds})
    pairs = found["protocol"].str.extract(labels).dropna()
    down, across = pairs.columns
    cells = pairs.assign(accuracy=found["all, %"])
    made = cells.pivot(index=down, columns=across, values="accuracy").reindex(pairs[down].unique())
    made = made[pairs[across].unique()].add_prefix(f"{across} = ")
    return made.rename_axis(columns=None).reset_index(names=down)


# -- files ------------------------------------------------------------------------------------------------------------


def scenario_of(name: str) -> Scenario:
    """The scenario of scenarios/paper with this name."""
    return fedsim.load(SCENARIOS / f"{name.replace('-', '_')}.yaml")


def scenarios_of(data: str) -> list[Scenario]:
    """The scenarios of a comparison."""
    return [scenario_of(name) for name in (SCENARIO_OF[data], *MORE_OF.get(data, ()))]


def tried_rates(names: Sequence[str]) -> pd.Series:
    """What each system with each learning rate reached, in the scenarios of rates."""
    return pd.concat(ends_of(scenario_of(name), pd.read_csv(HERE / f"rounds/{name}.csv")) for name in names)


def kept_rounds(folder: str = "rounds") -> Rounds:
    """The evaluated rounds that are kept here, by scenario."""
    return {path.stem: pd.read_csv(path) for path in sorted((HERE / folder).glob("*.csv"))}


def keep_rounds(folders: Sequence[str]) -> None:
    """Take over the evaluated rounds of whole runs of scenarios/paper, one file for each.

    A run may be in several folders, each with some of its protocols or seeds.
    """
    found: dict[str, list[pd.DataFrame]] = {}
    classes: dict[str, list[pd.DataFrame]] = {}
    for results in map(fedsim.load_results, folders):
        found.setdefault(results.name, []).append(results.rounds)
        if len(of_devices := device_rounds(results)):
            classes.setdefault(results.name, []).append(of_devices)
    for name, parts in classes.items():
        write(f"device_classes/{name}.csv", pd.concat(parts)[KEPT_OF_CLASSES].round(6))
    for name, parts in found.items():
        rounds = pd.concat(parts)
        if rounds.duplicated(["protocol", "seed", "round"]).any():
            raise SystemExit(f"two folders have the same run of {name}")
        scenario = scenario_of(name)
        expected = {(each.title, seed, scenario.stop.rounds) for each in scenario.protocols for seed in scenario.seeds}
        ends = {
            (*run, scenario.stop.rounds if diverged_at(of_run) else of_run["round"].max())
            for run, of_run in rounds.groupby(["protocol", "seed"])
        }
        if unlike := expected ^ ends:
            raise SystemExit(f"this is no whole run of {name}: {sorted(unlike)[0]} is in one of them only")
        scores = [*SCORES, *(["accuracy_mean"] if name in OWN_SCORES else [])]
        kept = rounds[[*KEPT, *(score for score in scores if score in rounds)]].dropna(subset=["accuracy"])
        write(f"rounds/{name}.csv", kept.assign(sim_time_s=kept["sim_time_s"].round(3)).round(6))


def file_of(data: str, what: str) -> str:
    """The name of a comparison's table."""
    return f"{data} {what}.csv".replace(", ", "_").replace(" ", "_")


def write(name: str, table: pd.DataFrame) -> None:
    (HERE / name).write_text(table.to_csv(index=False, lineterminator="\n"), encoding="utf-8", newline="")
    print(HERE / name)


if __name__ == "__main__":
    keep_rounds(sys.argv[1:])
    for name, table in tables(kept_rounds(), kept_rounds("device_classes")).items():
        write(name, table)
