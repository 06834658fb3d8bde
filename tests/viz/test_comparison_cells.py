"""What a comparison says in words."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path

from tiny_results import rounds_of, summary_of, write_results

from fedsim.experiment.compare import compare
from fedsim.experiment.shown_results import as_html, as_text
from fedsim.viz.human import number, with_half_width
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
    assert cells["time to target"].to_list() == ["median 2 h (2 of 3)"]


def with_times(folder: Path, times: list[float], **changed: object) -> str:
    """The cell of a protocol whose runs of an hour reached the target then; NaN is one that did not."""
    runs = [rounds_of("fedavg", seed, [0.5], round_s=3600.0) for seed in range(1, 1 + len(times))]
    kept = {"target_accuracy": 0.8, **changed}
    rows = [summary_of(run, time_to_target_s=time_s, **kept) for run, time_s in zip(runs, times, strict=True)]
    cells = comparison_cells(compare([write_results(folder, runs, summary=rows)]))
    return str(cells["time to target"][0]) if "time to target" in cells else "no column"


def test_what_the_target_took_is_a_mean_a_median_or_a_bound(tmp_path: Path) -> None:
    cells = {
        "all": with_times(tmp_path / "all", [600.0, 660.0, 720.0]),
        "most": with_times(tmp_path / "most", [600.0, nan, 660.0]),
        "one": with_times(tmp_path / "one", [600.0, nan, nan]),
        "none": with_times(tmp_path / "none", [nan, nan, nan]),
        "diverged": with_times(tmp_path / "diverged", [nan, nan, nan], loss=inf),
        "a single run": with_times(tmp_path / "single", [600.0]),
        "a single run that missed it": with_times(tmp_path / "missed", [nan]),
        "no target": with_times(tmp_path / "no", [nan, nan, nan], target_accuracy=nan),
    }
    assert cells == {
        "all": "11.0 ± 2.5 min",  # 4.3027 * 1 / sqrt(3)
        "most": "median 11 min (2 of 3)",
        "one": "> 60 min (1 of 3)",
        "none": "> 60 min (0 of 3)",
        "diverged": "never (0 of 3)",
        "a single run": "10 min",
        "a single run that missed it": "> 60 min",
        "no target": "no column",
    }


def test_units_in_the_head_are_one_for_the_column(tmp_path: Path) -> None:
    runs = [
        rounds_of(name, seed, [0.5], round_s=size) for name, size in (("a", 90.0), ("b", 9000.0)) for seed in (1, 2)
    ]
    rows = [summary_of(run, target_accuracy=0.8, rounds_to_target=1) for run in runs]
    comparison = compare([write_results(tmp_path / "run", runs, summary=rows)])
    cells = comparison_cells(comparison, ["rounds_to_target"], units_in_head=True)
    assert cells["simulated time (h)"].tolist() == ["0.0250", "2.50"]
    assert cells["uplink (kB)"].tolist() == ["667", "667"]
    assert cells["rounds to target 0.8"].tolist() == ["1", "1"]
    assert cells["time to target 0.8 (h)"].tolist() == ["> 0.0250 (0 of 2)", "> 2.50 (0 of 2)"]


def test_the_fronts_have_a_column_for_those_who_ask(tmp_path: Path) -> None:
    runs = [
        rounds_of("quick", 1, [0.5], round_s=1.0, round_bytes=9e6),
        rounds_of("good", 1, [0.9], round_s=5.0, round_bytes=9e6),
        rounds_of("thrifty", 1, [0.4], round_s=5.0, round_bytes=1e6),
        rounds_of("worse", 1, [0.4], round_s=6.0, round_bytes=2e6),
    ]
    comparison = compare([write_results(tmp_path / "run", runs)])
    assert "front" not in comparison_cells(comparison)
    assert comparison_cells(comparison, front=True)["front"].tolist() == ["time", "time, bytes", "bytes", ""]


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


def test_an_error_in_its_unit_stands_in_for_the_bare_number(tmp_path: Path) -> None:
    runs = [rounds_of("fedavg", 1, [nan])]
    errors = {"loss": 0.04, "rmse": 0.2, "rmse_unseen": 0.3, "rmse_cycles": 25.0, "rmse_cycles_unseen": 37.5}
    came = {"newcomers": 2, "newcomers_rmse": 0.1, "newcomers_rmse_cycles": 12.5}
    newer = write_results(tmp_path / "newer", runs, summary=[summary_of(runs[0], **errors, **came)], name="newer")
    cells = comparison_cells(compare([newer]))
    assert [*cells][:4] == ["protocol", "loss", "RMSE, cycles", "RMSE, cycles, unseen"]
    assert cells.iloc[0, 2:4].tolist() == ["25", "37.5"] and "RMSE" not in cells
    (_, newcomers), *others = further_tables(compare([newer]))
    assert newcomers.to_dict("records") == [{"protocol": "fedavg", "newcomers": "2", "RMSE, cycles": "12.5"}]
    assert not others
    rows = [summary_of(runs[0], loss=0.04, rmse=0.2)]
    older = write_results(tmp_path / "older", runs, summary=rows, name="older")
    both = comparison_cells(compare([older, newer]))
    assert both["RMSE"].tolist() == ["0.200", "0.200"] and both["RMSE, cycles"].tolist() == ["", "25"]


def test_chosen_metrics_have_tables_of_their_own(tmp_path: Path) -> None:
    runs = [rounds_of(protocol, seed, [0.6]) for protocol in ("fedavg", "fedgsp") for seed in (1, 2)]
    rows = [
        summary_of(
            run,
            final_accuracy_unseen=0.4,
            macro_f1=0.5,
            missed_faults=0.25 * run["seed"].iloc[0],
            macro_f1_unseen=0.125 if place < 2 else nan,
            **{"recall_inner race": 0.75, "recall_sound": place / 4, "recall_sound_unseen": 1.0},
        )
        for place, run in enumerate(runs)
    ]
    bearings = write_results(tmp_path / "bearings", runs, summary=rows, name="bearings")
    assert not {"macro F1", "missed faults"} & {*comparison_cells(compare([bearings]))}, "a terminal is narrow"
    tables = dict(further_tables(compare([bearings])))
    assert list(tables) == ["Chosen metrics", "Chosen metrics, unseen", "Recall by class", "Recall by class, unseen"]
    first = tables["Chosen metrics"].iloc[0].to_dict()
    assert first == {
        **{"protocol": "fedavg", "seeds": "2", "accuracy": "0.600", "macro F1": "0.500"},
        "missed faults": "0.375 ± 1.588",
    }
    assert tables["Chosen metrics, unseen"].to_dict("records") == [
        {"protocol": "fedavg", "seeds": "2", "accuracy": "0.400", "macro F1": "0.125"}
    ]
    assert tables["Recall by class"].to_dict("records") == [
        {"class": "inner race", "fedavg": "0.750", "fedgsp": "0.750"},
        {"class": "sound", "fedavg": "0.125 ± 1.588", "fedgsp": "0.625 ± 1.588"},
    ]
    assert tables["Recall by class, unseen"]["class"].tolist() == ["sound"]
    for shown in (as_text("", bearings.folder, bearings.summary, []), as_html("", Path(), bearings.summary, [])):
        assert "Recall by class" in shown and "inner race" in shown and "missed faults" in shown

    odd = rounds_of("class", 1, [0.6])
    pumps = write_results(tmp_path / "pumps", [odd], summary=[summary_of(odd, recall_leaks=0.5)], name="pumps")
    tables = dict(further_tables(compare([bearings, pumps])))
    assert tables["Recall by class"].to_dict("records")[1:] == [
        {"run": "bearings", "true class": "sound", "fedavg": "0.125 ± 1.588", "fedgsp": "0.625 ± 1.588", "class": ""},
        {"run": "pumps", "true class": "leaks", "fedavg": "", "fedgsp": "", "class": "0.500"},
    ]
    assert tables["Chosen metrics"]["run"].tolist() == ["bearings", "bearings"]
    odd = odd.assign(protocol="run")
    fans = write_results(tmp_path / "fans", [odd], summary=[summary_of(odd, recall_leaks=0.5)], name="fans")
    ((_, recall),) = further_tables(compare([fans]))
    assert recall.to_dict("records") == [{"class": "leaks", "protocol run": "0.500"}]


def test_a_number_that_is_very_large_is_short() -> None:
    assert number(2.5e41) == "2.50e+41" and number(123456.0) == "123456"
    assert with_half_width(2.5e41, 3.1e40) == "2.50e+41 ± 3e+40"
