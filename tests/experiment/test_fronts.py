"""Who is on the front of a comparison: means of whole sets of seeds, in one accounting."""

from __future__ import annotations

from math import nan
from pathlib import Path

import pytest
from tiny_results import rounds_of, summary_of, write_results

from fedsim.experiment.compare import compare


def test_all_runs_count_together(tmp_path: Path) -> None:
    results = [
        write_results(tmp_path / name, [rounds_of("fedavg", 1, [accuracy], round_s=time_s)], name=name)
        for name, accuracy, time_s in (("lte", 0.8, 50.0), ("nr", 0.8, 10.0))
    ]
    table = compare(results)
    assert table["front_time"].tolist() == [False, True]
    assert table["front_bytes"].tolist() == [True, True], "equal in both"


def test_a_closed_form_is_on_no_front_and_keeps_nobody_off(tmp_path: Path) -> None:
    run = rounds_of("fedavg", 1, [0.5])
    rows = [summary_of(run), summary_of(run, accounting="formula", sim_time_s=1.0, transfer_bytes=1.0)]
    table = compare([write_results(tmp_path / "run", [run], summary=rows)])
    assert table[["front_time", "front_bytes"]].to_numpy().tolist() == [[True, True], [False, False]]


def test_who_lost_a_seed_is_not_judged_by_the_others(tmp_path: Path) -> None:
    runs = [rounds_of(name, seed, [0.9 if name == "lucky" else 0.6]) for name in ("lucky", "steady") for seed in (1, 2)]
    rows = [summary_of(run) for run in runs]
    rows[1] |= {"final_accuracy": nan}
    table = compare([write_results(tmp_path / "run", runs, summary=rows)])
    assert table["front_time"].tolist() == [False, True]


@pytest.mark.parametrize("at", [None, ("round", 1.0)])
def test_where_nothing_was_learned_nobody_is_on_a_front(at: tuple[str, float] | None, tmp_path: Path) -> None:
    table = compare([write_results(tmp_path / "run", [rounds_of("fedavg", 1, [nan])])], at=at)  # type: ignore[arg-type]
    assert not table[["front_time", "front_bytes"]].any(axis=None)


def test_a_budget_has_a_front_of_its_own(tmp_path: Path) -> None:
    quick = rounds_of("quick", 1, [0.6, 0.6, 0.6], round_s=1.0)
    slow = rounds_of("slow", 1, [0.5, 0.5, 0.9], round_s=2.0)
    results = write_results(tmp_path / "run", [quick, slow])
    assert compare([results])["front_time"].tolist() == [True, True]
    assert compare([results], at=("round", 2))["front_time"].tolist() == [True, False]
