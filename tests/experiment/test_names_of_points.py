"""Points of a sweep are called by their values of what it varies, and its folder stands for all of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_results import rounds_of, write_results, write_sweep

import fedsim
from fedsim.errors import UserError
from fedsim.experiment.compare import compare, run_names
from fedsim.experiment.results import Results, load_results
from fedsim.experiment.several_results import load_finished, load_several

KEYS = ("network.cell.radio.profile", "protocols.fedavg.fraction")
NAMES = ["radio.profile=nb_iot_nb1, fedavg.fraction=0.1", "radio.profile=lte_m_m1, fedavg.fraction=0.1"]
ROWS = [["nb_iot_nb1", 0.1], ["lte_m_m1", 0.1]]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_sweep(tmp_path / "study", KEYS, ROWS)


def point(sweep: Path, number: int) -> Results:
    return load_results(sweep / "points" / f"{number:012x}")


def run(folder: Path, name: str) -> Results:
    return write_results(folder, [rounds_of("fedavg", 1, [0.5])], name=name)


def test_a_point_is_called_by_its_values(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [point(study, 0), point(study, 1)]
    assert run_names(points) == NAMES
    assert run_names(points[1:]) == NAMES[1:]
    assert run_names([*points, run(tmp_path / "run", "tiny")]) == [*NAMES, "tiny"]
    (tmp_path / "link").symlink_to(points[0].folder)
    monkeypatch.chdir(points[1].folder)
    assert run_names([load_results(tmp_path / "link"), load_results(Path())]) == NAMES


def test_points_of_two_sweeps_stay_apart(study: Path, tmp_path: Path) -> None:
    other = write_sweep(tmp_path / "other", KEYS, ROWS, name="second")
    assert run_names([point(study, 0), point(other, 0)]) == [f"tiny: {NAMES[0]}", f"second: {NAMES[0]}"]
    third = write_sweep(tmp_path / "third", KEYS, ROWS)
    folders = [point(study, 0), point(third, 0), point(third, 1)]
    assert run_names(folders) == [*(str(result.folder) for result in folders[:2]), NAMES[1]]


def test_a_run_that_is_called_like_a_point_has_its_folder_for_a_name(study: Path, tmp_path: Path) -> None:
    namesake = run(tmp_path / "run", NAMES[0])
    assert run_names([point(study, 0), namesake]) == [f"tiny: {NAMES[0]}", str(namesake.folder)]


def test_what_no_sweep_knows_is_called_like_any_run(study: Path, tmp_path: Path) -> None:
    left_out = run(study / "points" / "abcdefabcdef", "older")
    assert run_names([left_out, point(study, 0)]) == ["older", NAMES[0]]
    (study / "sweep.json").write_text("{}")
    points = [point(study, 0), point(study, 1)]
    assert run_names(points) == [str(each.folder) for each in points]


def test_values_are_on_one_line_and_not_long(tmp_path: Path) -> None:
    rows = [["x\ny\u202e<b>"], ["x" * 500], [{"name": "fixed", "rates": [1, None]}], [True]]
    names = run_names(load_several([write_sweep(tmp_path / "odd", ["a"], rows)]))
    assert names[0] == r"a=x\ny\u202e<b>" and names[2:] == ["a={name: 'fixed', rates: [1, null]}", "a=true"]
    assert all(name.isprintable() and len(name) < 200 for name in names)


def test_the_folder_of_a_sweep_stands_for_all_its_points(study: Path, tmp_path: Path) -> None:
    single = run(tmp_path / "run", "other")
    assert list(compare([str(study), single])["run"]) == [*NAMES, "other"]
    found, passed_over = load_finished([study, tmp_path, single.folder])
    assert run_names(found) == [*NAMES, "other"] and len(passed_over) == 1
    for point in (study / "points").iterdir():
        (point / "scenario.yaml").write_text("name: tiny")
    assert fedsim.export([study], "parquet") == study / "exports" / "parquet"


def test_a_sweep_and_its_point_are_the_same_run_twice(study: Path) -> None:
    with pytest.raises(UserError, match="000000000001 is named twice"):
        load_finished([study, study / "points" / "000000000001"])


def test_an_unfinished_sweep_is_no_finished_run(study: Path, tmp_path: Path) -> None:
    path = study / "sweep.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "running"}))
    problem = f"the sweep in {study} is not finished; start it again to go on"
    single = run(tmp_path / "run", "other")
    assert load_finished([study, single.folder]) == ([single], [problem])
    with pytest.raises(UserError, match=problem):
        load_several([study])
