"""What a comparison says in words."""

from __future__ import annotations

from math import nan
from pathlib import Path

from tiny_results import rounds_of, summary_of, write_results

from fedsim.experiment.compare import compare
from fedsim.experiment.shown_results import as_html, as_text
from fedsim.viz.tables import comparison_cells, further_tables


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


CHOSEN = {
    **{"filters_share": 0.69, "flops_share": 0.5, "present_share": 0.8, "kept_accuracy": 0.31, "target_met": 1.0},
    **{"inference_s": 0.002, "kept_inference_s": 0.0016},
}
CAME = {"newcomers": 2, "newcomers_accuracy": 0.7, "newcomers_s": 90.0, "newcomers_bytes": 2e6}


def test_what_only_some_have_is_in_tables_of_its_own(tmp_path: Path) -> None:
    runs = [rounds_of(protocol, 1, [0.5]) for protocol in ("fedavg", "spatl")]
    rows = [summary_of(runs[0], **CAME), summary_of(runs[1], **CHOSEN, **CAME | {"newcomers": 0})]
    results = write_results(tmp_path / "run", runs, summary=rows)
    (filters, chosen), (newcomers, came) = further_tables(compare([results]))
    assert filters.startswith("Filters that clients have chosen last") and newcomers.startswith("Newcomers")
    assert chosen.to_dict("records") == [
        {
            **{"protocol": "spatl", "filters": "0.690", "FLOPs": "0.500", "with shortcuts": "0.800"},
            **{"target met": "1", "accuracy": "0.310", "inference": "1.60 ms", "of whole models": "2 ms"},
        }
    ]
    assert came["protocol"].tolist() == ["fedavg", "spatl"] and came["newcomers"].tolist() == ["2", "0"]
    assert came.iloc[0][["accuracy", "simulated time", "downlink"]].tolist() == ["0.700", "90 s", "2 MB"]
    for shown in (as_text("tiny", results.folder, results.summary, []), as_html("", Path(), results.summary, [])):
        assert filters in shown and newcomers in shown and "1.60 ms" in shown
    assert not list(further_tables(compare([results], at=("round", 1)))), "a budget is of rounds, and these are not"
    assert compare([results], target=0.4)["newcomers_accuracy_mean"].tolist() == [0.7, 0.7]
    plain = write_results(tmp_path / "plain", [*runs, rounds_of("spatl", 2, [0.5])], name="plain")
    assert not list(further_tables(compare([plain])))
    (_, chosen), (_, came) = further_tables(compare([results, plain]))
    assert chosen["run"].tolist() == ["tiny"] and came["run"].tolist() == ["tiny", "tiny"], "of one of two runs"
    assert came["seeds"].tolist() == ["1", "1"]


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
