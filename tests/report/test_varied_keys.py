"""A report of a whole sweep shows what it found over its keys, with the numbers of `fedsim compare`."""

from __future__ import annotations

import shutil
from pathlib import Path

import altair as alt
import pytest
from tiny_results import rounds_of, write_results, write_sweep

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
