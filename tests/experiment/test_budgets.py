"""Runs as if they had ended when a budget was spent."""

from __future__ import annotations

from math import isnan, nan
from pathlib import Path

import digit_runs
import pandas as pd
import pytest
from tiny_results import rounds_of, summary_of

import fedsim
from fedsim.errors import UserError
from fedsim.experiment.compare import Budget, ended_before, summary_at


def test_a_run_stands_as_it_was_when_it_was_last_evaluated() -> None:
    row = summary_at(rounds_of("a", 1, [0.1, 0.2, nan, 0.4]), ("round", 3)).iloc[0]
    assert (row["rounds"], row["sim_time_s"], row["transfer_bytes"], row["network_bytes"]) == (2, 20.0, 2e6, 6e6)
    assert (row["final_accuracy"], row["best_accuracy"], row["loss"]) == (0.2, 0.2, 0.8)


def test_without_any_evaluation_the_last_round_counts() -> None:
    row = summary_at(rounds_of("a", 1, [nan, nan, nan]), ("sim_time_s", 25.0)).iloc[0]
    assert (row["rounds"], row["sim_time_s"]) == (2, 20.0)
    assert isnan(row["final_accuracy"])


def test_before_the_first_evaluation_there_is_nothing() -> None:
    row = summary_at(rounds_of("a", 1, [nan, 0.2]), ("round", 1)).iloc[0]
    assert row["rounds"] == 0
    assert isnan(row["sim_time_s"]) and isnan(row["final_accuracy"])


def test_who_could_have_gone_on_within_the_budget_had_ended_before() -> None:
    runs = [rounds_of("short", 1, [0.1, 0.2]), rounds_of("long", 1, [0.1] * 9), rounds_of("near", 1, [0.1] * 5)]
    rounds = pd.concat(runs, ignore_index=True)
    assert ended_before(rounds, ("round", 5)) == ["short"]
    assert ended_before(rounds, ("sim_time_s", 59.9)) == ["short"]  # "near" ended at 50 s; a round takes 10 s
    assert ended_before(rounds, ("sim_time_s", 60.0)) == ["short", "near"]


@pytest.mark.parametrize(
    ("at", "rounds"),
    [(("sim_time_s", 20.0), 2), (("sim_time_s", 19.999), 1), (("uplink_bytes", 2e6), 3), (("network_bytes", 8e6), 2)],
)
def test_what_is_exactly_spent_is_within_the_budget(at: Budget, rounds: int) -> None:
    assert summary_at(rounds_of("a", 1, [0.1, 0.2, 0.3]), at)["rounds"].to_list() == [rounds]


def test_every_run_has_a_row_ended_or_not_begun() -> None:
    runs = [rounds_of("slow", 1, [0.5, 0.6], round_s=100.0), rounds_of("quick", 2, [0.1, 0.2])]
    table = summary_at(pd.concat(runs, ignore_index=True), ("sim_time_s", 60.0))
    assert table[["protocol", "seed", "rounds"]].to_numpy().tolist() == [["slow", 1, 0], ["quick", 2, 2]]
    assert isnan(table["final_accuracy"][0]) and isnan(table["sim_time_s"][0])
    assert (table["final_accuracy"][1], table["sim_time_s"][1]) == (0.2, 20.0)


def test_a_whole_run_has_the_summary_that_it_has() -> None:
    rounds = rounds_of("a", 1, [0.1, nan, 0.3])
    expected = {key: value for key, value in summary_of(rounds).items() if value == value}
    for at in (None, ("round", 3.0), ("transfer_bytes", 1e12)):
        row = summary_at(rounds, at).iloc[0]
        assert {key: row[key] for key in expected} == expected


def test_rounds_of_a_run_give_the_summary_of_the_run(tmp_path: Path) -> None:
    changes = {
        "stop.rounds": 9,
        "stop.target_accuracy": 0.4,
        "seeds": [1, 2],
        "evaluate.on": ["global", "clients"],
        "data.client_test_fraction": 0.2,
    }
    results = fedsim.run(digit_runs.scenario(changes), out=tmp_path / "run", executor="serial")
    summary = results.summary[results.summary["accounting"] == "event"].reset_index(drop=True)
    again = summary_at(results.rounds, target=0.4)
    assert again["rounds_to_target"].notna().any()
    pd.testing.assert_frame_equal(again, summary[list(again)], check_dtype=False)


def test_a_target_is_confirmed_within_the_budget_or_not_at_all() -> None:
    rounds = rounds_of("a", 1, [0.5, 0.8, 0.8, 0.8, 0.8])
    assert summary_at(rounds, target=0.8)["rounds_to_target"].to_list() == [2]
    assert summary_at(rounds, ("round", 4), target=0.8)["rounds_to_target"].isna().all()


@pytest.mark.parametrize(
    ("at", "target", "message"),
    [
        (("rounds", 3), None, "'rounds' is no budget; there is round, .*did you mean 'round'"),
        (("round", 0), None, "round=0 must be a finite number above 0"),
        (("round", nan), None, "round=nan must be a finite number"),
        (None, 80, "target=80 must be an accuracy between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(at: Budget | None, target: float | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        summary_at(rounds_of("a", 1, [0.5]), at, target)
