"""The tables of docs/claims follow from the rounds that are kept beside them, and verdicts from their intervals."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from tiny_results import rounds_of

CLAIMS = Path(__file__).parents[2] / "docs/claims"


@cache
def script() -> ModuleType:
    """docs/claims/tables.py as a module."""
    sys.path.append(str(CLAIMS))  # where its neighbour is
    spec = importlib.util.spec_from_file_location("docs_claims", CLAIMS / "tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_every_table_is_what_its_rounds_give() -> None:
    made = script().tables(script().kept_rounds(), script().kept_rounds("device_classes"))
    assert len(made) >= 8
    for name, table in made.items():
        written = table.to_csv(index=False, lineterminator="\n")
        assert (CLAIMS / name).read_text(encoding="utf-8") == written, (
            f"python docs/claims/tables.py writes {name} anew"
        )


def test_every_claim_is_judged_where_it_was_made() -> None:
    verdicts = pd.read_csv(CLAIMS / "verdicts.csv")
    assert len(verdicts) == sum(len(claim.data) for claim in script().CLAIMS)
    assert set(verdicts["pooled verdict"]) <= {"confirmed", "contradicted", "undecided", "between evaluations"}
    assert (verdicts["seeds"] == 3).all()


def test_what_is_said_in_short_follows_from_the_verdicts() -> None:
    verdicts = pd.read_csv(CLAIMS / "verdicts.csv", dtype=str)
    made = script().said_in_short(verdicts) | script().of_contests(verdicts)
    for name, table in {**made, "chance.csv": script().chance(verdicts)}.items():
        assert (CLAIMS / name).read_text(encoding="utf-8") == table.to_csv(index=False, lineterminator="\n")


def test_a_claim_has_one_verdict_in_short_only_where_all_its_tests_agree() -> None:
    verdicts = pd.read_csv(CLAIMS / "verdicts.csv", dtype=str)
    several = 0
    for name in script().said_in_short(verdicts):
        short = pd.read_csv(CLAIMS / name, dtype=str)
        data = [column for column in short if column in script().SCENARIO_OF]
        for row in short.to_dict("records"):
            rows = verdicts[verdicts["claim"].eq(row["claim"]) & verdicts["at equal"].eq(row["at equal"])]
            rows = rows[rows["data"].isin(data)]
            given = set(rows[["pooled verdict", "unseen verdict", "by client verdict"]].stack().dropna())
            several += len(given) > 1
            assert row["verdict"] == (given.pop() if len(given) == 1 else "mixed"), row["claim"]
    assert several


def test_every_claim_stands_in_short_or_against_all() -> None:
    short = {claim for name in script().said_in_short(pd.read_csv(CLAIMS / "verdicts.csv")) for claim in told(name)}
    against = set(script().CONTEST_CLAIMS)
    assert {(f"{one.better} > {one.worse}", one.at) for one in script().CLAIMS if one not in against} <= short


def told(name: str) -> set[tuple[str, str]]:
    """The claims of a table in short, with their budgets."""
    return set(pd.read_csv(CLAIMS / name)[["claim", "at equal"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("verdicts", "of_all"),
    [
        (("confirmed", "confirmed"), "confirmed"),
        (("confirmed", "undecided"), "undecided"),
        (("confirmed", "between evaluations"), "undecided"),
        (("undecided", "undecided"), "undecided"),
        (("undecided", "contradicted"), "contradicted"),
    ],
)
def test_a_claim_against_all_is_confirmed_against_each_and_contradicted_by_one(
    verdicts: Sequence[str], of_all: str
) -> None:
    given = pd.DataFrame({"claim": ["a > b", "a > c"], "pooled verdict": verdicts, "data": "x", "at equal": "rounds"})
    of_others = pd.DataFrame(
        {"claim": ["a > d", "b > c"], "pooled verdict": "contradicted", "data": "x", "at equal": "rounds"}
    )
    [row] = script().against_all(pd.concat([given, of_others]), ["a"], ["b", "c"], ["x"]).to_dict("records")
    assert row["claim"] == "a > all 2"
    assert row["verdict"] == of_all
    assert row[verdicts[0]].startswith("b")


def test_every_claim_names_its_comparison() -> None:
    """The data or the scenario, and the seeds; a comparison is a row of the table of them."""
    page = (CLAIMS.parent / "claims.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE))
    assert known == set(script().SCENARIO_OF) | {"shards"}
    claims = re.split(r"^\d+\. \*\*", page[page.index("## Claim by claim") :], flags=re.MULTILINE)[1:]
    assert len(claims) >= 30
    for claim in claims:
        compared = " ".join(claim.split()).partition("*Compared:* ")[2].partition(". ")[0]
        named = set(re.findall(r"`([^`]+)`", compared))
        small = {word.strip(",") for word in compared.split() if word.strip(",").endswith("_small")}
        assert (named or small) and named <= known, claim[:80]
        assert all((CLAIMS.parents[1] / f"scenarios/paper/{name}.yaml").exists() for name in small), claim[:80]
        assert re.search(r"seed|before any training", compared), claim[:80]


TRIED_AS = {"fedavg, as many steps": "as many steps", "fedgs_random": "fedgs", "naive_gsp_icg": "naive_gsp"}
"""A system -> the name of its grid, where that is not the protocol's."""


@pytest.mark.parametrize(
    ("names", "data"), [(contest.rates[data], data) for contest in script().CONTESTS.values() for data in contest.data]
)
def test_each_system_has_the_rates_that_were_best_in_its_grid(names: Sequence[str], data: str) -> None:
    known = pd.to_numeric(script().tried_rates(names), errors="coerce").dropna()
    for scenario in script().scenarios_of(data):
        rates = importlib.import_module("competitors").rates(scenario)
        for protocol in scenario.protocols:
            tried_as = TRIED_AS.get(protocol.title, protocol.name)
            grid = known[[name.partition(", ")[0] == tried_as for name in known.index]]
            if protocol.title not in importlib.import_module("competitors").SECOND_BEST.values():  # the best one fails
                assert known[f"{tried_as}, {rates[protocol.title]}"] == grid.max(), protocol.title


def test_one_test_in_twenty_is_false_by_chance() -> None:
    verdicts = pd.DataFrame({"pooled verdict": ["confirmed"] * 40, "unseen verdict": ["undecided"] * 20 + [None] * 20})
    verdicts["by client verdict"] = None
    counted = script().chance(verdicts).set_index("test set")
    assert counted["verdicts"].to_dict() == {"pooled": 40, "unseen": 20, "by client": 0, "all": 60}
    assert counted["false by chance"].to_dict() == {"pooled": "2.0", "unseen": "1.0", "by client": "0.0", "all": "3.0"}
    assert counted.loc["all", ["confirmed", "undecided", "contradicted"]].to_list() == [40, 20, 0]


def test_one_seed_has_a_mean_and_no_interval() -> None:
    once, twice = script().reached(pd.concat([runs("a", 0.7), runs("b", 0.7, 0.8)]), "rounds").to_dict("records")
    assert (once["pooled, %"], once["+/- pooled"]) == ("70.0", "")
    assert (twice["pooled, %"], twice["+/- pooled"]) == ("75.0", "63.5")


def runs(protocol: str, *finals: float, round_bytes: float = 1e6) -> pd.DataFrame:
    """A run of two rounds for each final accuracy, on seeds 1, 2 and so on."""
    seeds = [
        rounds_of(protocol, seed, [final / 2, final], round_bytes=round_bytes) for seed, final in enumerate(finals, 1)
    ]
    return pd.concat(seeds, ignore_index=True)


@pytest.mark.parametrize(
    ("better", "verdict"),
    [
        ((0.71, 0.81, 0.91), "confirmed"),
        ((0.69, 0.79, 0.89), "contradicted"),
        ((0.75, 0.80, 0.85), "undecided"),
    ],
)
def test_a_verdict_is_of_differences_on_the_same_seed(better: Sequence[float], verdict: str) -> None:
    table = pd.concat([runs("a", *better), runs("b", 0.70, 0.80, 0.90)], ignore_index=True)
    row = script().judged(script().Claim("paper", "a", "b", "rounds", ("x",)), "x", table)
    assert row["pooled verdict"] == verdict


def test_at_equal_bytes_a_verdict_holds_with_the_next_evaluation_of_either() -> None:
    """HFedMS-D spends 4 MB; FedAvg has 0.4 after 3 MB and 0.8 after 6 MB."""
    fedavg = runs("fedavg", 0.8, 0.8, 0.8, round_bytes=3e6)
    for cheap, verdict, reverse in (
        (0.6, "between evaluations", "between evaluations"),
        (0.9, "confirmed", "contradicted"),
        (0.3, "contradicted", "confirmed"),
    ):
        table = pd.concat([runs("hfedms_d", cheap, cheap, cheap, round_bytes=2e6), fedavg], ignore_index=True)
        row = script().judged(script().Claim("paper", "hfedms_d", "fedavg", "bytes", ("x",)), "x", table)
        assert (row["pooled verdict"], row["pooled, points"]) == (verdict, f"{100 * (cheap - 0.4):+.1f}")
        row = script().judged(script().Claim("paper", "fedavg", "hfedms_d", "bytes", ("x",)), "x", table)
        assert row["pooled verdict"] == reverse


def test_a_system_that_was_evaluated_in_each_round_has_these_evaluations_within_a_budget() -> None:
    rounds = pd.DataFrame({"protocol": ["a", "a", "b"], "seed": 1, "round": [2, 4, 2], "accuracy": [0.2, 0.4, 0.9]})
    each = pd.DataFrame({"protocol": "a", "seed": 1, "round": [1, 2, 3], "accuracy": [0.1, 0.25, 0.3], "more": 0})
    of_protocols = dict([*script().finer(rounds, each).groupby("protocol")["accuracy"]])
    assert of_protocols["a"].to_list() == [0.1, 0.25, 0.3, 0.4]
    assert of_protocols["b"].to_list() == [0.9]
    assert script().finer(rounds, None) is rounds


@pytest.mark.parametrize(
    ("at", "column", "step", "expected"),
    [
        ("time", "sim_time_s", 10.0, "between evaluations"),  # FedAvg's first round ends within 20 s, its second later
        ("time", "sim_time_s", 3.0, "contradicted"),  # both of its rounds do
        ("bytes on backhaul", "backbone_bytes", 10.0, "between evaluations"),
        ("bytes on backhaul", "backbone_bytes", 3.0, "contradicted"),
    ],
)
def test_the_budget_of_fedgs_is_what_its_own_rounds_cost(at: str, column: str, step: float, expected: str) -> None:
    """FedGS ends at 0.7 and has spent 20; FedAvg has 0.4 after one round and 0.8 after two."""
    fedgs, fedavg = runs("fedgs", 0.7, 0.7, 0.7), runs("fedavg", 0.8, 0.8, 0.8)
    table = pd.concat(
        [fedgs.assign(**{column: 10.0 * fedgs["round"]}), fedavg.assign(**{column: 1.1 * step * fedavg["round"]})],
        ignore_index=True,
    )
    row = script().judged(script().Claim("paper", "fedgs", "fedavg", at, ("x",)), "x", table)
    assert row["pooled verdict"] == expected


def test_iterations_stand_within_what_fedgs_spends_with_ten() -> None:
    """With T = 50 a round costs five times as much: one round is beyond the budget in time, and not in rounds."""
    ten = pd.concat([runs("fedgs", 0.6, 0.6), runs("fedavg", 0.5, 0.5)])
    fifty = runs("fedgs", 0.9)
    scenarios = script().SCENARIO_OF
    kept = {scenarios[data]: ten for data in script().FEDGS}
    kept |= {f"{scenarios[data]}-t50": fifty.assign(sim_time_s=5 * fifty["sim_time_s"]) for data in script().FEDGS}
    table = script().iterations(kept)
    assert table["T"].to_list() == [10, 50] * len(script().FEDGS)
    assert table["equal rounds"].to_list()[:2] == ["60.0 (2)", "90.0 (2)"]
    assert table["equal time"].to_list()[:2] == ["60.0 (2)", ""]
