"""What a comparison says in words."""

from __future__ import annotations

from math import nan
from pathlib import Path

from tiny_results import rounds_of, summary_of, write_results

from fedsim.experiment.compare import compare
from fedsim.viz.tables import comparison_cells


def test_one_seed_is_told_in_numbers_with_units(tmp_path: Path) -> None:
    runs = [rounds_of("fedavg", 1, [0.5, 0.912], round_s=22_320, round_bytes=3e7)]
    cells = comparison_cells(compare([write_results(tmp_path / "run", runs)]))
    assert cells.to_dict("records") == [
        {
            "protocol": "fedavg",
            "accuracy": "0.912",
            "loss": "0.0880",
            "simulated time": "12.4 h",
            "uplink": "40 MB",
            "downlink": "20 MB",
            "rounds": "2",
        }
    ]


def test_bytes_of_other_links_are_shown_to_those_who_compare_by_them(tmp_path: Path) -> None:
    run = rounds_of("fedavg", 1, [0.5, 0.9], round_bytes=3e7)
    comparison = compare([write_results(tmp_path / "run", [run])], at=("transfer_bytes", 4e7))
    assert "traffic" not in comparison_cells(comparison)
    assert comparison_cells(comparison, further=["transfer_bytes"])["traffic"].tolist() == ["30 MB"]


def test_several_seeds_are_a_mean_with_an_interval_where_they_differ(tmp_path: Path) -> None:
    runs = [rounds_of("fedavg", seed, [accuracy]) for seed, accuracy in ((1, 0.7), (2, 0.8), (3, 0.9))]
    row = comparison_cells(compare([write_results(tmp_path / "run", runs)])).iloc[0]
    assert row["accuracy"] == "0.800 ± 0.248"  # 4.3027 * 0.1 / sqrt(3)
    assert (row["seeds"], row["rounds"], row["simulated time"]) == ("3", "1", "10 s")


def test_a_cell_tells_when_only_some_seeds_have_it(tmp_path: Path) -> None:
    runs = [rounds_of("fedavg", seed, [0.5]) for seed in (1, 2, 3)]
    rows = [summary_of(run, time_to_target_s=time_s) for run, time_s in zip(runs, (7200.0, 7200.0, nan), strict=True)]
    cells = comparison_cells(compare([write_results(tmp_path / "run", runs, summary=rows)]))
    assert cells["time to target"].to_list() == ["2 h (2 of 3)"]


def test_a_column_that_is_empty_everywhere_is_left_out(tmp_path: Path) -> None:
    trained = write_results(tmp_path / "a", [rounds_of("fedavg", 1, [0.5])], name="a")
    untrained = write_results(tmp_path / "b", [rounds_of("fedavg", 1, [nan])], name="b")
    assert "accuracy" not in comparison_cells(compare([untrained]))
    both = comparison_cells(compare([trained, untrained]))
    assert both["accuracy"].to_list() == ["0.500", ""]
    assert both["run"].to_list() == ["a", "b"]
    assert "energy" not in both


def test_a_formulas_row_says_so(tmp_path: Path) -> None:
    run = rounds_of("fedavg", 1, [0.5])
    rows = [summary_of(run), summary_of(run, accounting="formula")]
    cells = comparison_cells(compare([write_results(tmp_path / "run", [run], summary=rows)]))
    assert cells["protocol"].to_list() == ["fedavg", "fedavg (formula)"]
