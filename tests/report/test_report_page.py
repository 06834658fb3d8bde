"""A report shows what the run folder has: its tables, its scenario and where it comes from; and charts of the same."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import altair as alt
import pandas as pd
import pytest
from pages_read import Page
from small_studies import PROTOCOLS, small_study

from fedsim.experiment.compare import compare
from fedsim.experiment.results import Results, load_results
from fedsim.metrics.intervals import half_width
from fedsim.report.page import report_page
from fedsim.report.shapes import SHAPES
from fedsim.viz.style import PART_COLOURS, looks
from fedsim.viz.tables import comparison_cells
from fedsim.viz.time_tables import TITLES

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
    steps = page.specs["front-of-time"]["datasets"]["front"]
    points = page.specs["front-of-time"]["datasets"]["points"]
    assert [(step["x"], step["y"]) for step in steps[:-1]] == [(point["x"], point["y"]) for point in points]
    assert steps[-1]["y"] == max(point["y"] for point in points)
    assert all(point["low"] < point["y"] < point["high"] for point in points)


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
    assert shown["part"].to_list() == ["queueing", "on the air", "training"] * 2
    assert set(zip(shown["part"], shown["colour"], strict=True)) == {
        (TITLES[part], PART_COLOURS[part]) for part in ("queueing", "airtime", "work")
    }
    lengths = (study.critical_path["end_s"] - study.critical_path["start_s"]).groupby(study.critical_path["protocol"])
    assert (shown.groupby("name")["to"].max() * 60).to_dict() == pytest.approx(lengths.mean().to_dict(), rel=1e-8)
    rows = rows_of(page.specs["rounds-of-1"], "part")
    assert [(row["part"], row["rounds"], row["from"], row["to"]) for row in rows[3:6]] == [
        *(("queueing", "2", 0, 9), ("on the air", "2", 9, 54), ("training", "2", 54, 90))  # of 90 s
    ]
    assert page.table("Parts of a mean round").rows[1][:3] == ["fedavg", "1.50", "0.150"]


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


def test_a_scenario_that_is_too_long_is_not_shown_as_a_whole_and_all_else_is(tmp_path: Path) -> None:
    small = small_study(tmp_path / "run")
    with (small.folder / "scenario.yaml").open("a") as file:
        file.write("# and so on\n" * 50_000)
    page = Page(report_page([small]))
    assert f"The whole scenario is not shown: {small.folder}/scenario.yaml has more than 500,000 letters." in page.words
    assert "Two cells of a plant" in page.words and "and so on" not in page.words
    assert set(page.specs) == CHARTS


def test_several_runs_share_the_comparison_and_have_sections_of_their_own(tmp_path: Path) -> None:
    runs = [small_study(tmp_path / name, name=f"plant-{name}") for name in ("north", "south")]
    text = report_page(runs)
    page = Page(text)
    names = [entry["name"] for entry in rows_of(page.specs["time-by-protocol"], "name")]
    assert names == ["fedavg, north", "prox, strong, north", "fedavg, south", "prox, strong, south"]
    assert {"channels-bytes-of-run-1", "channels-bytes-of-run-2", "score-over-time"} <= set(page.specs)
    assert [row["line"] for row in rows_of(page.specs["channels-bytes-of-run-2"], "line")][:2] == [2, 3]
    assert "Network: south" in page.words and "plant-north, plant-south" in page.words
    headings = [own["aria-labelledby"] for own in page.all("figure") if "of-run-2" in own["id"]]
    titles = dict(zip([own["id"] for own in page.all("h3")], page.texts("h3"), strict=True))
    assert headings and all(re.search(r", south\b", titles[heading]) for heading in headings)
    assert titles["rounds-of-3-of-run-2-title"] == "Parts of each round, fedavg, south"
    (common, north, south) = re.findall("<ul>(.*?)</ul>", text.split("</nav>")[0], re.DOTALL)
    assert "Pareto front" in common and "Network" not in common
    assert '<li class="run">north</li>' in north and '<li class="run">south</li>' in south
    assert south.count("<a ") == north.count("<a ") == 7
    links = [link["href"] for link in page.all("a")]
    assert links == [f"#{section['id']}" for section in page.all("section")]
    for key in ("front-of-time", "front-of-traffic"):
        (scale,) = re.findall(r"'shape': \{[^{}]*'scale': (\{[^{}]*\})", str(page.specs[key]))
        assert scale == str({"domain": [0, 1, 2, 3], "range": [SHAPES["o"]] * 2 + [SHAPES["s"]] * 2})
    identities = [own["id"] for _, own in page.elements if "id" in own]
    assert len(identities) == len(set(identities))  # also of the shapes in the two drawings
    assert {name.split("-of-run-")[1][0] for name in identities if name.startswith("map-of-run")} == {"1", "2"}


def test_many_runs_have_their_small_sections_only_and_the_page_says_so(
    study: Results, page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "leaves out" not in page.words and page.all("use")
    monkeypatch.setattr("fedsim.report.page._MOST_IN_FULL", 3)
    runs = [load_results(Path(shutil.copytree(study.folder, tmp_path / name))) for name in ("a", "b", "c", "d")]
    many = Page(report_page(runs))
    assert many.texts("h1") == ["small: 4 runs"]
    assert (
        "This page of 4 runs leaves out the drawings of their networks, the charts of device classes, the charts of "
        "groups and what was taken for what; a report of up to 3 runs has them."
    ) in many.words
    kinds = {own["id"].removesuffix("-of-run-4") for own in many.all("section") if own["id"].endswith("-of-run-4")}
    assert kinds == {"scenario", "rounds", "network", "provenance"}
    assert "channels-bytes-of-run-4" in many.specs and not many.all("use")


@pytest.mark.long
def test_five_protocols_three_seeds_and_five_hundred_rounds_are_under_ten_megabytes(tmp_path: Path) -> None:
    big = small_study(tmp_path / "run", [f"protocol-{number}" for number in range(5)], seeds=3, rounds=500)
    page = report_page([big]).encode()
    assert len(page) < 10e6
    assert len(rows_of(Page(page.decode()).specs["score-over-time"], "mean")) == 5 * 500
