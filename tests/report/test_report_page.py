"""A report shows what the run folder has: its tables, its scenario and where it comes from; and charts of the same."""

from __future__ import annotations

import math
import re
from pathlib import Path

import altair as alt
import pandas as pd
import pytest
from pages_read import Page
from small_studies import PROTOCOLS, small_study
from tiny_results import rounds_of, summary_of, write_results

from fedsim.experiment.compare import compare
from fedsim.experiment.results import Results
from fedsim.metrics.intervals import half_width
from fedsim.report.page import report_page
from fedsim.report.parts import Section
from fedsim.viz.style import looks
from fedsim.viz.tables import comparison_cells

CHARTS = {
    *("score-over-time", "score-over-traffic", "score-over-rounds", "loss-over-rounds"),
    *("score-by-protocol", "time-by-protocol", "traffic-by-protocol", "front-of-time", "front-of-traffic"),
    *("channels-utilisation", "channels-bytes", "class-uplink-bytes", "class-downlink-bytes", "class-compute-s"),
    *("mean-round", "rounds-of-1", "rounds-of-2", "groups-over-rounds", "confusion-1-1", "confusion-1-2"),
}


def rows_of(spec: dict, least: str) -> list[dict]:
    """The data of a chart that has a field of this name."""
    return next(rows for rows in spec["datasets"].values() if least in rows[0])


def test_each_chart_is_valid_vega_lite_with_a_table_a_caption_and_a_heading(page: Page) -> None:
    assert set(page.specs) == CHARTS
    for spec in page.specs.values():
        alt.LayerChart.from_dict(spec)  # raises where the schema does not know it
    figures = {figure["id"]: figure for figure in page.all("figure")}
    assert set(figures) == {*CHARTS, "map"}
    assert len(page.all("figcaption")) == len(page.all("details")) - 1 == len(figures)  # the scenario is folded too
    identities = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identities) == len(set(identities))
    assert {figure["aria-labelledby"] for figure in figures.values()} <= set(identities)


def test_the_page_says_what_it_is(page: Page) -> None:
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == len(page.all("title")) == 1
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")
    links = [link["href"] for link in page.all("a")]
    assert links == [f"#{section['id']}" for section in page.all("section")]


def test_the_comparison_is_the_one_that_compare_prints(page: Page, study: Results) -> None:
    cells = comparison_cells(compare([study]))
    assert page.table("Protocols").rows == [list(cells), *cells.to_numpy().tolist()]


def test_a_curve_is_the_mean_over_seeds_with_its_interval(page: Page, study: Results) -> None:
    rows = rows_of(page.specs["score-over-time"], "mean")
    assert len(rows) == 2 * 4
    for row in rows:
        seeds = study.rounds[
            (study.rounds["protocol"] == PROTOCOLS[row["line"]]) & (study.rounds["round"] == row["round"])
        ]
        half = half_width(seeds["accuracy"].to_list())
        assert row["mean"] == pytest.approx(seeds["accuracy"].mean(), rel=1e-8)
        assert row["low"] == pytest.approx(max(0.0, seeds["accuracy"].mean() - half), rel=1e-8)
        assert row["high"] == pytest.approx(min(1.0, seeds["accuracy"].mean() + half), rel=1e-8)
        assert row["x"] == pytest.approx(seeds["sim_time_s"].mean() / 60, rel=1e-8)  # minutes, as the axis says
        assert (row["seeds"], row["name"]) == (2, PROTOCOLS[row["line"]])


def test_the_table_of_a_curve_has_the_points_of_the_curve(page: Page) -> None:
    table, points = page.table("Accuracy over simulated time"), rows_of(page.specs["score-over-time"], "mean")
    assert table.rows[0] == ["protocol", "round", "simulated time, min", "test accuracy", "seeds"]
    assert [(row[0], row[1]) for row in table.rows[1:]] == [(one["name"], str(one["round"])) for one in points]
    for row, one in zip(table.rows[1:], points, strict=True):
        mean, _, half = row[3].partition(" ± ")
        assert float(row[2]) == pytest.approx(one["x"], rel=0.005)
        assert float(mean) == pytest.approx(one["mean"], abs=0.005)
        assert one["half"].startswith("± ") and float(one["half"][2:]) == pytest.approx(float(half), abs=0.005)


def test_a_protocol_has_the_colour_of_its_plots_in_all_charts(page: Page) -> None:
    expected = [look.colour for look in looks(PROTOCOLS).values()]
    for key in ("score-over-time", "loss-over-rounds", "front-of-time", "channels-bytes"):
        scales = re.findall(r"'color': \{[^{}]*'scale': (\{[^{}]*\})", str(page.specs[key]))
        assert scales and all(scale == str({"domain": [0, 1], "range": expected}) for scale in scales), key
    assert [row["colour"] for row in rows_of(page.specs["time-by-protocol"], "colour")] == expected


def test_bars_are_the_summary(page: Page, study: Results) -> None:
    for key, column, unit in (("time", "sim_time_s", 60), ("traffic", "transfer_bytes", 1e6), ("score", None, 1)):
        parts = pd.DataFrame(rows_of(page.specs[f"{key}-by-protocol"], "part")).groupby("place")
        means = study.summary.groupby("protocol", sort=False)[column or "final_accuracy"].mean()
        assert parts["to"].max().to_list() == pytest.approx((means / unit).to_list(), rel=1e-8)


def test_the_front_has_whom_nobody_beats(page: Page) -> None:
    table = page.table("Accuracy against traffic")
    assert [row[-1] for row in table.rows[1:]] == ["no", "yes"]  # the second is better, with half of the bytes
    assert [row[-1] for row in page.table("Accuracy against simulated time").rows[1:]] == ["yes", "yes"]


def test_the_busiest_channels_come_first(page: Page, study: Results) -> None:
    means = study.links.groupby(["link", "direction", "protocol"])["utilisation"].mean() * 100
    busiest = means.groupby(["link", "direction"]).max().sort_values(ascending=False)
    table = page.table("Utilisation of the busiest channels")
    assert [tuple(row[:2]) for row in table.rows[1:]] == busiest.index[:8].to_list()
    found = {
        (row["channel"], row["name"]): row["value"] for row in rows_of(page.specs["channels-utilisation"], "value")
    }
    assert found[", ".join(busiest.index[0]), "fedavg"] == pytest.approx(means[(*busiest.index[0], "fedavg")], rel=1e-8)


def test_devices_groups_and_confusions_are_those_of_the_tables(page: Page, study: Results) -> None:
    last = study.device_classes[study.device_classes["round"] == 4]
    each = (last["compute_s"] / last["clients"]).groupby([last["protocol"], last["device_class"]], sort=False).mean()
    shown = rows_of(page.specs["class-compute-s"], "part")
    assert [row["part"] * 60 for row in shown] == pytest.approx(each.to_list(), rel=1e-8)  # it says minutes
    assert page.table("Groups").rows[1:] == [["prox, strong", "1", "1", "1"], ["prox, strong", "3", "2", "1"]]
    cells = {(row["row"], row["column"]): row for row in rows_of(page.specs["confusion-1-1"], "share")}
    assert cells["worn", "ok"]["share"] == pytest.approx(2 / 9, rel=1e-8)
    assert cells["ok", "ok"]["count"] == 8 and ("ok", "broken") not in cells
    assert ["worn", "ok", "2", "22.2 %"] in page.table("fedavg: samples by").rows


def test_the_parts_of_rounds_are_those_of_their_critical_paths(page: Page, study: Results) -> None:
    shown = pd.DataFrame(rows_of(page.specs["mean-round"], "part"))
    assert shown["part"].to_list() == ["queueing", "airtime", "work"] * 2
    lengths = (study.critical_path["end_s"] - study.critical_path["start_s"]).groupby(study.critical_path["protocol"])
    assert (shown.groupby("name")["to"].max() * 60).to_dict() == pytest.approx(lengths.mean().to_dict(), rel=1e-8)
    rows = rows_of(page.specs["rounds-of-1"], "part")
    assert [(row["part"], row["rounds"], row["from"], row["to"]) for row in rows[3:6]] == [
        *(("queueing", "2", 0, 9), ("airtime", "2", 9, 54), ("work", "2", 54, 90))  # of 90 s
    ]
    assert page.table("Parts of a mean round").rows[1][:3] == ["fedavg", "1.50", "0.150"]


def test_many_rounds_are_put_together_in_bars_that_the_caption_tells_of(tmp_path: Path) -> None:
    page = Page(report_page([small_study(tmp_path / "run", rounds=125)]))
    assert "mean over 2 seeds, and over 3 rounds in each bar" in page.words
    table = page.table("Parts of each round, fedavg")
    assert [row[0] for row in table.rows[1:]][-2:] == ["121 to 123", "124 to 125"]
    assert len(table.rows) == 1 + 42


def test_a_run_of_an_earlier_version_has_no_parts_of_rounds(tmp_path: Path) -> None:
    small = small_study(tmp_path / "run")
    (small.folder / "critical_path.csv").unlink()
    assert CHARTS - set(Page(report_page([small])).specs) == {"mean-round", "rounds-of-1", "rounds-of-2"}


def test_the_scenario_and_the_provenance_are_there(page: Page, study: Results) -> None:
    assert (study.folder / "scenario.yaml").read_text().strip() in page.words
    for fact in ("Two cells of a plant", "digits, 3 classes, samples of 1 x 8 x 8", "softmax, 650 parameters, 2.60 kB"):
        assert fact in page.words
    for fact in (
        "Linux-6.1-x86_64",
        "serial-1/float32/torch2.13.0/cpu",
        "12.5 s",
        "300 MB",
        "torch 2.13.0, numpy 2.4.6",
    ):
        assert fact in page.words
    assert "Remark: the second cell is hardly used" in page.words
    assert [row[-1] for row in page.table("Runs").rows[1:]] == ["0123456789abcdef" * 2] * 4


def test_equal_runs_make_equal_pages(study: Results, text: str) -> None:
    assert report_page([Results(study.folder)]) == text


def test_where_nothing_was_learned_only_costs_are_drawn(tmp_path: Path) -> None:
    small = small_study(tmp_path / "run")
    quiet = small.rounds.assign(accuracy=math.nan, loss=math.nan)
    quiet.to_parquet(small.folder / "rounds.parquet", index=False)
    rows = [summary_of(rows) for _, rows in quiet.groupby(["protocol", "seed"], sort=False)]
    pd.DataFrame(rows).to_csv(small.folder / "summary.csv", index=False)
    (small.folder / "confusion.csv").unlink()
    specs = Page(report_page([Results(small.folder)])).specs
    assert {"time-by-protocol", "traffic-by-protocol"} == {key for key in specs if key.endswith("by-protocol")}
    assert not {key for key in specs if key.startswith(("score", "loss", "front", "confusion"))}


def test_several_runs_share_the_comparison_and_have_sections_of_their_own(tmp_path: Path) -> None:
    runs = [small_study(tmp_path / name, name=f"plant-{name}") for name in ("north", "south")]
    page = Page(report_page(runs))
    names = [entry["name"] for entry in rows_of(page.specs["time-by-protocol"], "name")]
    assert names == ["fedavg, north", "prox, strong, north", "fedavg, south", "prox, strong, south"]
    assert {"channels-bytes-of-run-1", "channels-bytes-of-run-2", "score-over-time"} <= set(page.specs)
    assert [row["line"] for row in rows_of(page.specs["channels-bytes-of-run-2"], "line")][:2] == [2, 3]
    assert "Network: south" in page.words and "plant-north, plant-south" in page.words


def test_a_diverged_seed_is_told_and_its_infinite_loss_is_not_drawn(tmp_path: Path) -> None:
    small = small_study(tmp_path / "run")
    lost = (small.rounds["protocol"] == "fedavg") & (small.rounds["seed"] == 2) & (small.rounds["round"] > 2)
    small.rounds.assign(loss=small.rounds["loss"].mask(lost, math.inf)).to_parquet(small.folder / "rounds.parquet")
    page = Page(report_page([Results(small.folder)]))
    assert "fedavg diverged on 1 of 2 seeds" in page.words
    drawn = [row["round"] for row in rows_of(page.specs["loss-over-rounds"], "mean") if row["line"] == 0]
    assert drawn == [1, 2] and "last round that all of its seeds reached" in page.words


def test_bands_that_would_hide_the_lines_are_cut_and_the_caption_says_so(tmp_path: Path, page: Page) -> None:
    small = small_study(tmp_path / "run")
    apart = small.rounds["accuracy"].where(small.rounds["seed"] == 1, small.rounds["accuracy"] + 0.1).clip(upper=1.0)
    small.rounds.assign(accuracy=apart).to_parquet(small.folder / "rounds.parquet", index=False)
    wide = Page(report_page([Results(small.folder)]))
    rows = rows_of(wide.specs["score-over-rounds"], "mean")
    lowest, highest = min(row["mean"] for row in rows), max(row["mean"] for row in rows)
    assert min(row["low"] for row in rows) == 0.0 and max(row["high"] for row in rows) == 1.0
    (low, high) = wide.specs["score-over-rounds"]["layer"][1]["encoding"]["y"]["scale"]["domain"]
    assert low == pytest.approx(max(0.0, lowest - 0.3 * (highest - lowest)))
    assert high == pytest.approx(min(1.0, highest + 0.3 * (highest - lowest)))
    assert "are cut; the table has them" in wide.words and "are cut" not in page.words


def test_long_lines_are_thinned_and_the_caption_says_so(tmp_path: Path, page: Page) -> None:
    small = small_study(tmp_path / "run", protocols=["fedavg"], seeds=1)
    scores = [0.5 + 0.3 * math.sin(number / 9) for number in range(2_500)]
    write_results(tmp_path / "long", [rounds_of("fedavg", 1, scores)])
    for name in ("links.csv", "scenario.yaml"):
        (tmp_path / "long" / name).write_bytes((small.folder / name).read_bytes())
    long = Page(report_page([Results(tmp_path / "long")]))
    rows = rows_of(long.specs["score-over-rounds"], "mean")
    assert len(rows) == 2_000 and (rows[0]["round"], rows[-1]["round"]) == (1, 2_500)
    assert max(row["mean"] for row in rows) == pytest.approx(max(scores), rel=1e-8)
    assert "thinned to 2,000 points" in long.words and "thinned" not in page.words
    assert len(long.table("Accuracy over rounds").rows) == 2_001


def test_five_protocols_three_seeds_and_five_hundred_rounds_are_under_ten_megabytes(tmp_path: Path) -> None:
    big = small_study(tmp_path / "run", [f"protocol-{number}" for number in range(5)], seeds=3, rounds=500)
    page = report_page([big]).encode()
    assert len(page) < 10e6
    assert len(rows_of(Page(page.decode()).specs["score-over-time"], "mean")) == 5 * 500


def test_a_scenario_that_is_lost_is_missed_and_all_else_is_shown(tmp_path: Path) -> None:
    small = small_study(tmp_path / "run")
    (small.folder / "scenario.yaml").unlink()
    page = Page(report_page([small]))
    assert "The scenario is not shown: " in page.words and "The network is not drawn: " in page.words
    assert set(page.specs) == CHARTS


def test_a_section_needs_no_more_than_a_name() -> None:
    assert Section("key", "Title").pictures == ()
