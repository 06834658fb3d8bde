"""A report of a whole sweep shows what it found over its keys, with the numbers of `fedsim compare`."""

from __future__ import annotations

import re
import shutil
from math import inf, nan
from pathlib import Path

import altair as alt
import pytest
import vl_convert
from tiny_results import rounds_of, summary_of, write_results, write_sweep

from fedsim.experiment.figures import together
from fedsim.experiment.results import Results
from fedsim.experiment.several_results import load_several
from fedsim.experiment.sweep.results import load_sweep
from fedsim.report.lines import Lines
from fedsim.report.parts import Section
from fedsim.report.varied import varied

RADIO, FRACTION = "network.cell.radio.profile", "protocols.fedavg.fraction"
HOSTILE = "</script><script>alert(1)</script>"


def section(results: list[Results]) -> Section | None:
    return varied(results, Lines(together(results, "summary"), together(results, "rounds")))


def section_of(folder: Path) -> Section:
    found = section(load_several([folder]))
    assert found is not None
    return found


def points(folder: Path, name: str) -> list[dict]:
    (picture,) = [picture for picture in section_of(folder).pictures if picture.key == name]
    assert picture.spec is not None
    alt.LayerChart.from_dict(dict(picture.spec))  # raises where the schema does not know it
    rows: list[dict] = picture.spec["datasets"]["points"]
    return rows


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two radios and two fractions; two protocols and seeds at each point."""
    rows = [[radio, fraction] for radio in ("nb_iot_nb1", HOSTILE) for fraction in (0.3, 0.1)]
    folder = write_sweep(tmp_path / "study", [RADIO, FRACTION], rows)
    for number, point in enumerate(sorted((folder / "points").iterdir())):
        shutil.rmtree(point)
        runs = [
            rounds_of(protocol, seed, [0.5 + (number + 10 * seed) / 100], round_s=60.0 * (1 + number))
            for seed in (1, 2)
            for protocol in ("fedavg", "fedgsp")
        ]
        write_results(point, runs)
    return folder


def test_each_metric_has_a_chart_for_each_combination_of_the_other_keys(study: Path) -> None:
    pictures = section_of(study).pictures
    names = [f"varied-{metric}-{panel}" for metric in ("accuracy", "time", "traffic") for panel in (1, 2)]
    assert [picture.key for picture in pictures] == names
    assert pictures[0].title == "Accuracy at the end over fedavg.fraction, radio.profile=nb_iot_nb1"
    assert [entry.name for entry in pictures[0].legend] == ["fedavg", "fedgsp"]


def test_a_point_is_the_mean_of_the_sweeps_table_with_its_interval(study: Path) -> None:
    compared = load_sweep(study).compare()
    first = compared[compared["radio.profile"] == "nb_iot_nb1"]
    rows = points(study, "varied-accuracy-1")
    assert [row["x"] for row in rows] == list(first["fedavg.fraction"]) == [0.3, 0.3, 0.1, 0.1]
    assert [row["mean"] for row in rows] == pytest.approx(list(first["final_accuracy_mean"]))
    assert [row["mean"] - row["low"] for row in rows] == pytest.approx(
        [min(row["mean"], half) for row, half in zip(rows, first["final_accuracy_half_width"], strict=True)]
    )
    assert [row["high"] for row in rows] == [1.0] * 4  # an interval of two seeds ends where accuracies do
    assert [row["mean"] for row in points(study, "varied-time-2")] == [3.0, 3.0, 4.0, 4.0]  # minutes


def test_the_table_below_has_the_numbers_of_the_chart(study: Path) -> None:
    sheet = section_of(study).pictures[2].sheet
    assert sheet.cells.to_numpy().tolist() == [
        ["0.3", "fedavg", "60 s"],
        ["0.3", "fedgsp", "60 s"],
        ["0.1", "fedavg", "2 min"],
        ["0.1", "fedgsp", "2 min"],
    ]


def test_a_line_is_hidden_in_these_charts_and_in_no_other(study: Path) -> None:
    results = load_several([study])
    lines = Lines(together(results, "summary"), together(results, "rounds"))
    own = {entry.line for entry in lines.over_runs().values()}
    assert len(own) == 2 and not own & {entry.line for entry in lines.of_run()}


def test_texts_stand_side_by_side_and_only_in_the_data(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "radios", [RADIO], [["nb_iot_nb1"], [HOSTILE]])
    rows = points(folder, "varied-accuracy-1")
    assert [(row["x"], row["value"]) for row in rows] == [(0, "nb_iot_nb1"), (1, HOSTILE)]
    (picture, *_) = section_of(folder).pictures
    assert picture.spec is not None and HOSTILE not in str({**picture.spec, "datasets": {}})


def test_numbers_that_lie_far_apart_are_on_a_logarithmic_axis(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "rates", ["training.learning_rate"], [[0.001], [0.1]])
    (picture, *_) = section_of(folder).pictures
    assert "'type': 'log'" in str(picture.spec) and "value (logarithmic)" in str(picture.spec)


def test_marks_have_the_numbers_of_the_points(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "rates", ["training.momentum"], [[0.01], [0.05], [0.075]])
    drawn = vl_convert.vegalite_to_svg({**(section_of(folder).pictures[0].spec or {}), "width": 600})
    assert {"0.01", "0.05", "0.075"} <= set(re.findall(">([0-9.]+)</text>", drawn))


def test_all_charts_of_a_metric_have_the_same_axes_where_points_are_no_grid(tmp_path: Path) -> None:
    rows = [[0.001, 16], [0.1, 16], [0.1, 32], [0.05, 32], [0.2, 64]]
    folder = write_sweep(tmp_path / "rows", ["training.learning_rate", "training.batch_size"], rows)
    specs = [picture.spec for picture in section_of(folder).pictures if picture.key.startswith("varied-time")]
    axes = {str([layer["encoding"][axis] for layer in spec["layer"] for axis in "xy"]) for spec in specs if spec}
    assert len(specs) == 3 and len(axes) == 1


def test_one_seed_has_no_whisker(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "rates", ["training.momentum"], [[0.0], [0.5]])
    assert "whisker" not in section_of(folder).words
    assert not [picture for picture in section_of(folder).pictures if "'low'" in str(picture.spec.get("layer"))]


def test_a_target_that_some_seed_missed_at_each_point_has_no_chart(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "rates", ["training.momentum"], [[0.0], [0.5]])
    for point in (folder / "points").iterdir():
        shutil.rmtree(point)
        runs = [rounds_of("fedavg", seed, [0.9]) for seed in (1, 2)]
        reached = [summary_of(run, time_to_target_s=time) for run, time in zip(runs, (20.0, nan), strict=True)]
        write_results(point, runs, summary=reached)
    assert [picture.key for picture in section_of(folder).pictures] == [
        *("varied-accuracy-1", "varied-time-1", "varied-traffic-1")
    ]


def test_an_infinite_value_stands_beside_the_others(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "rates", ["network.link.rate_bps"], [[1e6], [inf]])
    assert [(row["x"], row["value"]) for row in points(folder, "varied-time-1")] == [(0, "1000000"), (1, "inf")]


def test_values_that_python_takes_for_equal_stay_apart(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path / "mixed", ["network.quantise"], [[0], [False], ["0"], [2]])
    names = [row["value"] for row in points(folder, "varied-time-1")]
    assert names == ["0", "false", '"0"', "2"]


def test_panels_that_are_left_out_are_counted(tmp_path: Path) -> None:
    rows = [[number, text] for text in "abcdefghijklmn" for number in (1, 2)]
    found = section_of(write_sweep(tmp_path / "many", ["a.number", "a.text"], rows))
    assert len(found.pictures) == 3 * 12
    assert found.missing == ["The other keys have 14 combinations, and charts are drawn of the first 12."]


def test_what_is_not_a_whole_sweep_has_no_such_section(study: Path, tmp_path: Path) -> None:
    results = load_several([study])
    other = write_results(tmp_path / "run", [rounds_of("fedavg", 1, [0.5])], name="other")
    assert section(results[1:]) is None
    assert section([*results, other]) is None
    assert section([other]) is None
    same = write_sweep(tmp_path / "one", [RADIO], [["nb_iot_nb1"]])
    assert section(load_several([same])) is None  # one value: nothing is varied
    (study / "sweep.json").write_text("{")
    assert section(results) is None
