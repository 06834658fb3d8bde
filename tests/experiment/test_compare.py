"""Means over seeds and their intervals: Student's t where it can be worked out by hand, and where it can be counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tiny_results import rounds_of, summary_of, write_results

from fedsim.errors import UserError
from fedsim.experiment.compare import compare
from fedsim.experiment.figures import plot
from fedsim.experiment.means_over_seeds import METRICS, TO_TARGET
from fedsim.metrics.summary import event_row
from fedsim.viz.tables import comparison_cells

STUDENT_975_2 = 4.302653  # t(0.975) with 2 degrees of freedom, from a printed table


def test_a_row_is_the_mean_of_its_seeds_with_students_interval(tmp_path: Path) -> None:
    runs = [rounds_of("fedavg", seed, [0.5, accuracy]) for seed, accuracy in ((1, 0.7), (2, 0.8), (3, 0.9))]
    row = compare([write_results(tmp_path / "run", runs)]).iloc[0]
    assert (row["run"], row["protocol"], row["accounting"], row["n"]) == ("tiny", "fedavg", "event", 3)
    assert row["final_accuracy_mean"] == pytest.approx(0.8)
    assert row["final_accuracy_half_width"] == pytest.approx(STUDENT_975_2 * 0.1 / math.sqrt(3), rel=1e-6)
    assert (row["sim_time_s_mean"], row["sim_time_s_half_width"]) == (20.0, 0.0)


def test_folders_do_as_well_as_what_was_loaded_from_them(tmp_path: Path) -> None:
    first, second = (write_results(tmp_path / name, [rounds_of(name, 1, [0.5])], name=name) for name in ("a", "b"))
    expected = compare([first, second])
    pd.testing.assert_frame_equal(compare([str(first.folder), second.folder]), expected)
    pd.testing.assert_frame_equal(compare([first, str(second.folder)]), expected)
    with pytest.raises(UserError, match="there is no run folder"):
        compare([tmp_path / "c"])


@pytest.mark.parametrize("together", [compare, plot])
def test_runs_come_in_a_list_of_at_least_one(together: Callable[[Any], object], tmp_path: Path) -> None:
    run = write_results(tmp_path / "run", [rounds_of("fedavg", 1, [0.5])])
    for alone in (run, run.folder, str(run.folder)):
        with pytest.raises(UserError, match="runs are given as a list"):
            together(alone)
    with pytest.raises(UserError, match="at least one run is needed"):
        together([])
    with pytest.raises(UserError, match="run is named twice, and its seeds would count twice: name it once"):
        together([run, run.folder / ".." / "run"])


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    row = compare([write_results(tmp_path / "run", [rounds_of("fedavg", 1, [0.5])])]).iloc[0]
    assert row["n"] == 1
    assert math.isnan(row["final_accuracy_half_width"])


def test_what_nobody_has_is_empty_and_never_zero(tmp_path: Path) -> None:
    row = compare([write_results(tmp_path / "run", [rounds_of("fedavg", seed, [0.5]) for seed in (1, 2)])]).iloc[0]
    for metric in ("energy_j", "time_to_target_s", "communication_s"):  # the last is no column of this summary at all
        assert math.isnan(row[f"{metric}_mean"])
        assert row[f"{metric}_n"] == 0


def with_times(folder: Path, times: list[float], **changed: object) -> pd.DataFrame:
    """The comparison of a run of a round of 10 s and 1 MB; NaN is a seed that missed the target."""
    runs = [rounds_of("fedavg", seed, [0.5]) for seed in range(1, 1 + len(times))]
    rows = [summary_of(run, time_to_target_s=time_s, **changed) for run, time_s in zip(runs, times, strict=True)]
    return compare([write_results(folder, runs, summary=rows)])


def test_a_target_that_all_seeds_reached_has_a_mean_and_a_median(tmp_path: Path) -> None:
    row = with_times(tmp_path / "run", [1.0, 2.0, 6.0], target_accuracy=0.8).iloc[0]
    assert (row["n"], row["target_accuracy"], row["time_to_target_s_n"]) == (3, 0.8, 3)
    assert (row["time_to_target_s_mean"], row["time_to_target_s_median"]) == (3.0, 2.0)
    assert row["time_to_target_s_half_width"] > 0 and row["time_to_target_s_median_low"] == 1.0
    assert math.isnan(row["time_to_target_s_median_high"]) and math.isnan(row["time_to_target_s_above"])


def test_a_target_that_some_seeds_missed_has_a_median_and_no_mean_of_the_fast_ones(tmp_path: Path) -> None:
    row = with_times(tmp_path / "run", [1.0, math.nan, 3.0], target_accuracy=0.8).iloc[0]
    assert (row["n"], row["time_to_target_s_n"], row["time_to_target_s_median"]) == (3, 2, 3.0)
    assert math.isnan(row["time_to_target_s_mean"]) and math.isnan(row["time_to_target_s_half_width"])
    assert (row["bytes_to_target_n"], row["bytes_to_target_above"], row["rounds_to_target_above"]) == (0, 1e6, 1.0)


def test_a_target_that_most_seeds_missed_has_a_bound(tmp_path: Path) -> None:
    row = with_times(tmp_path / "run", [4.0, math.nan, math.nan], target_accuracy=0.8).iloc[0]
    assert math.isnan(row["time_to_target_s_median"]) and row["time_to_target_s_above"] == 10.0


def test_without_a_target_nothing_was_missed(tmp_path: Path) -> None:
    for name, changed in (("older", {}), ("newer", {"target_accuracy": math.nan})):
        row = with_times(tmp_path / name, [math.nan] * 3, **changed).iloc[0]
        assert row.filter(like="_to_target").drop([f"{one}_n" for one in TO_TARGET]).isna().all()


def test_a_run_that_did_not_keep_its_target_had_one_if_any_protocol_reached_it(tmp_path: Path) -> None:
    runs = [rounds_of(protocol, 1, [0.5]) for protocol in ("fedavg", "fedprox")]
    rows = [summary_of(run, time_to_target_s=time_s) for run, time_s in zip(runs, (4.0, math.nan), strict=True)]
    table = compare([write_results(tmp_path / "run", runs, summary=rows)])
    assert table["time_to_target_s_above"].iloc[1] == 10.0


def test_a_seed_that_diverged_never_reaches_the_target(tmp_path: Path) -> None:
    runs = [rounds_of("fedavg", seed, [0.5]) for seed in (1, 2, 3)]
    losses, times = (0.1, 0.1, math.inf), (4.0, 5.0, math.nan)
    rows = [
        summary_of(run, loss=loss, time_to_target_s=time_s, sim_time_s=end, target_accuracy=0.8)
        for run, loss, time_s, end in zip(runs, losses, times, (9.0, 9.0, 1.0), strict=True)
    ]
    row = compare([write_results(tmp_path / "run", runs, summary=rows)]).iloc[0]
    assert row["time_to_target_s_median"] == 5.0, "at 4 a third has reached it, though no other run is there any more"


def test_a_closed_form_has_no_target_to_miss(tmp_path: Path) -> None:
    run = rounds_of("fedavg", 1, [0.5])
    rows = [summary_of(run, target_accuracy=0.8), summary_of(run, accounting="formula", target_accuracy=math.nan)]
    table = compare([write_results(tmp_path / "run", [run], summary=rows)])
    assert table["time_to_target_s_above"].tolist()[0] == 10.0 and math.isnan(table["time_to_target_s_above"].iloc[1])


def test_a_seed_without_any_round_has_missed_the_target_like_the_others(tmp_path: Path) -> None:
    runs = [rounds_of("slow", seed, [0.5] * 6, round_s=10.0 * seed) for seed in (1, 2, 9)]
    row = compare([write_results(tmp_path / "run", runs)], at=("sim_time_s", 50.0), target=0.8).iloc[0]
    assert (row["n"], row["time_to_target_s_n"], row["time_to_target_s_above"]) == (3, 0, 40.0)


def test_where_there_is_no_accuracy_no_seed_has_missed_a_target(tmp_path: Path) -> None:
    table = compare([write_results(tmp_path / "run", [rounds_of("fedavg", 1, [math.nan] * 2)])], target=0.8)
    assert table[["target_accuracy", "time_to_target_s_above"]].isna().all(axis=None)


def test_seeds_that_diverged_have_no_final_accuracy_and_the_others_are_told_to_be_fewer(tmp_path: Path) -> None:
    lost = rounds_of("fedavg", 2, [0.9, math.nan]).assign(loss=[0.1, math.inf])
    runs = [rounds_of("fedavg", 1, [0.5, 0.6]), lost, rounds_of("fedavg", 3, [0.5, 0.8])]
    rows = [{"protocol": "fedavg", "seed": run["seed"].iloc[0], **event_row(run, 0.9)} for run in runs]
    results = write_results(tmp_path / "run", runs, summary=rows)
    for row in (compare([results]).iloc[0], compare([results], target=0.9).iloc[0]):
        assert (row["n"], row["final_accuracy_n"], row["best_accuracy_n"]) == (3, 2, 3)
        assert (row["final_accuracy_mean"], row["loss_mean"]) == (pytest.approx(0.7), math.inf)
        assert row["rounds_to_target_n"] == 0
    assert comparison_cells(compare([results]))["accuracy"].iloc[0].endswith(" (2 of 3)")
    assert compare([results], at=("round", 1)).iloc[0]["final_accuracy_n"] == 3  # as it was before it diverged


def test_rows_keep_the_order_of_the_run_and_accountings_stay_apart(tmp_path: Path) -> None:
    runs = [rounds_of(protocol, 1, [0.5]) for protocol in ("zeta", "alpha")]
    rows = [summary_of(runs[0]), summary_of(runs[0], accounting="formula", sim_time_s=99.0), summary_of(runs[1])]
    table = compare([write_results(tmp_path / "run", runs, summary=rows)])
    assert table["protocol"].to_list() == ["zeta", "zeta", "alpha"]
    assert table["accounting"].to_list() == ["event", "formula", "event"]
    assert table["sim_time_s_mean"].to_list() == [10.0, 99.0, 10.0]


def test_columns_are_the_same_for_every_run(tmp_path: Path) -> None:
    table = compare([write_results(tmp_path / "run", [rounds_of("fedavg", 1, [math.nan])])])
    ends = ("mean", "half_width", "n")
    more = ("median", "median_low", "median_high", "above")
    columns = [f"{metric}_{end}" for metric in METRICS for end in (*ends, *(more if metric in TO_TARGET else ()))]
    expected = ["run", "protocol", "accounting", "n", "target_accuracy", *columns, "front_time", "front_bytes"]
    assert list(table) == expected


def test_chosen_metrics_of_any_run_have_columns_and_older_runs_are_read(tmp_path: Path) -> None:
    """What a run has not is empty, and over no seed."""
    runs = [rounds_of("fedavg", seed, [0.5]) for seed in (1, 2)]
    older = write_results(tmp_path / "older", runs, name="older")
    rows = [summary_of(run, macro_f1=0.2 * run["seed"].iloc[0], recall_sound=math.nan) for run in runs]
    newer = write_results(tmp_path / "newer", runs, summary=rows, name="newer")
    table = compare([older, newer]).set_index("run")
    assert table["macro_f1_n"].to_dict() == {"older": 0, "newer": 2}
    assert table.loc["newer", "macro_f1_mean"] == pytest.approx(0.3)
    assert table.loc["newer", "macro_f1_half_width"] == pytest.approx(12.7062 * 0.1, rel=1e-4)
    assert math.isnan(table.loc["older", "macro_f1_mean"]) and table.loc["newer", "recall_sound_n"] == 0
    assert len(compare([older]).columns) == len(table.columns) + 1 - 2 * 3


def test_chosen_metrics_are_taken_within_a_budget(tmp_path: Path) -> None:
    run = rounds_of("fedavg", 1, [0.5, 0.6, 0.7]).assign(macro_f1=[0.1, 0.2, 0.3], rmse_cycles=[30.0, 20.0, 10.0])
    result = write_results(tmp_path / "run", [run], summary=[summary_of(run, macro_f1=0.3, rmse_cycles=10.0)])
    found = compare([result], at=("round", 2)).iloc[0]
    assert (found["macro_f1_mean"], found["rmse_cycles_mean"]) == (0.2, 20.0)
    assert compare([result], target=0.9).iloc[0]["macro_f1_mean"] == 0.3


def test_runs_are_called_by_their_scenario_unless_two_share_its_name(tmp_path: Path) -> None:
    runs = [rounds_of("fedavg", 1, [0.5])]
    first, second, third = (
        write_results(tmp_path / folder, runs, name=name)
        for folder, name in (("a", "park"), ("b", "park"), ("c", "hall"))
    )
    assert compare([first, third])["run"].to_list() == ["park", "hall"]
    assert compare([first, second, third])["run"].to_list() == [str(first.folder), str(second.folder), "hall"]


def test_at_a_budget_runs_stand_as_if_they_had_ended_there(tmp_path: Path) -> None:
    quick = rounds_of("quick", 1, [0.1, 0.2, 0.3], round_bytes=1e6)
    dear = rounds_of("dear", 1, [0.4, 0.5, 0.6], round_bytes=5e6)
    table = compare([write_results(tmp_path / "run", [quick, dear])], at=("transfer_bytes", 6e6)).set_index("protocol")
    assert table["final_accuracy_mean"].to_dict() == {"quick": 0.3, "dear": 0.4}
    assert table["rounds_mean"].to_dict() == {"quick": 3.0, "dear": 1.0}
    assert table["transfer_bytes_mean"].to_dict() == {"quick": 3e6, "dear": 5e6}


def test_another_target_is_asked_after_the_run(tmp_path: Path) -> None:
    result = write_results(tmp_path / "run", [rounds_of("a", 1, [0.1, 0.8, 0.4, 0.8, 0.8, 0.8, 0.8])])
    assert math.isnan(compare([result])["rounds_to_target_mean"].iloc[0])
    row = compare([result], target=0.8).iloc[0]
    assert (row["rounds_to_target_mean"], row["time_to_target_s_mean"], row["bytes_to_target_mean"]) == (4, 40.0, 4e6)


def test_who_had_no_round_within_the_budget_stays_in_the_table(tmp_path: Path) -> None:
    runs = [rounds_of("slow", 1, [0.5], round_s=100.0), rounds_of("quick", 1, [0.4])]
    none = summary_of(runs[0], protocol="none", rounds=0)  # a run that ended before its first round did
    rows = [*map(summary_of, runs), none, summary_of(runs[1], accounting="formula")]
    table = compare([write_results(tmp_path / "run", runs, summary=rows)], at=("sim_time_s", 50.0))
    assert table["protocol"].to_list() == ["slow", "quick", "none"]
    assert table["accounting"].to_list() == ["event"] * 3  # a closed form is of a whole run
    assert table["final_accuracy_n"].to_list() == [0, 1, 0]
    assert table["rounds_mean"].to_list() == [0.0, 1.0, 0.0]


def test_runs_without_any_round_are_compared_as_well(tmp_path: Path) -> None:
    rounds = rounds_of("a", 1, [0.5])
    result = write_results(tmp_path / "run", [rounds.iloc[:0]], summary=[summary_of(rounds, rounds=0, newcomers=0)])
    asked: list[dict[str, Any]] = [{"at": ("round", 3)}, {"target": 0.8}, {"at": ("round", 3), "target": 0.8}]
    for how in asked:
        table = compare([result], **how)
        assert table[["protocol", "n", "rounds_mean"]].to_numpy().tolist() == [["a", 1, 0.0]]
        assert table["newcomers_n"].tolist() == [0 if "at" in how else 1]


def test_closed_forms_alone_are_of_whole_runs(tmp_path: Path) -> None:
    rounds = rounds_of("a", 1, [0.5])
    result = write_results(tmp_path / "run", [rounds], summary=[summary_of(rounds, accounting="formula")])
    assert len(compare([result])) == 1
    for asked in ({"at": ("round", 3.0)}, {"target": 0.8}):
        with pytest.raises(UserError, match="has closed forms only, which are of whole runs"):
            compare([result], **asked)  # type: ignore[arg-type]
