"""``fedsim report``: where the page goes, and what it never overwrites."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from html import escape
from pathlib import Path

import pytest
from pages_read import Page
from tiny_results import write_sweep

from fedsim.cli import main
from fedsim.experiment.results import Results
from fedsim.report import libraries
from fedsim.report.drawing import drawing_of

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def drawings() -> dict[str, str]:
    return {}


@pytest.fixture
def run(study: Results, tmp_path: Path, drawings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The study, whose network is drawn once: all copies of it look the same, and that takes a second."""

    def drawn(results: Results, prefix: str) -> str:
        if prefix not in drawings:
            drawings[prefix] = drawing_of(results, prefix)
        return drawings[prefix]

    monkeypatch.setattr("fedsim.report.links.drawing_of", drawn)
    return Path(shutil.copytree(study.folder, tmp_path / "run"))


def refusal(capsys: Capture, *words: str | Path) -> str:
    assert main(["report", *map(str, words)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return err.removeprefix("fedsim: ").rstrip()


def test_a_report_goes_into_the_run_folder_and_replaces_an_older_one(run: Path, text: str, capsys: Capture) -> None:
    path = run / "report.html"
    path.write_text(text.replace("quick", "slow") + "<p>older</p>")
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text() == text
    assert {entry.name for entry in run.iterdir()} == {
        *("report.html", "rounds.parquet", "summary.csv", "links.csv", "device_classes.csv", "critical_path.csv"),
        *("confusion.csv", "groups.parquet", "manifest.json", "scenario.yaml"),
    }


def test_a_sweep_is_one_report_whose_points_are_called_by_their_values(run: Path, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    sweep = write_sweep(tmp_path / "study", ["training.hostile"], [[hostile], ["tame"]])
    for point in (sweep / "points").iterdir():
        shutil.rmtree(point)
        shutil.copytree(run, point)
    assert main(["report", str(sweep)]) == 0
    text = (sweep / "report.html").read_text()
    name = f"training.hostile={hostile}"
    assert hostile not in text
    assert f"<h1>{escape(name)}, training.hostile=tame</h1>" in text
    assert f"hostile={escape(hostile)}</h2>" in text


def test_a_lost_table_of_where_the_time_went_is_missed_on_the_page_and_beside_it(run: Path, capsys: Capture) -> None:
    (run / "critical_path.csv").rename(run / "stragglers.csv")  # a run has all of these tables, or none
    assert main(["report", str(run)]) == 0
    lost = f"is not shown: {run} has lost its critical_path.csv; run the scenario again, into another folder"
    assert capsys.readouterr().err == f"fedsim: what rounds are made of {lost}\n"
    assert f"What rounds are made of {lost}." in Page((run / "report.html").read_text()).words


def test_a_run_of_a_version_without_critical_paths_misses_none(run: Path, capsys: Capture) -> None:
    (run / "critical_path.csv").unlink()
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().err == ""
    assert "What rounds are made of" not in (run / "report.html").read_text()


def test_a_lost_or_damaged_scenario_is_refused_with_the_words_of_export(run: Path, capsys: Capture) -> None:
    (run / "critical_path.csv").unlink()  # the study has only this one of four tables
    scenario = run / "scenario.yaml"
    for content in (b"\xff", b"name: [small", b"- small\n", None):
        scenario.unlink() if content is None else scenario.write_bytes(content)
        said = refusal(capsys, run)
        assert said.startswith(
            str(scenario) if content else f"{run} has lost its scenario.yaml; run the scenario again"
        )
        assert main(["export", str(run), "--to", "parquet"]) == 2
        assert capsys.readouterr().err == f"fedsim: {said}\n"
    assert not (run / "report.html").exists()


def test_what_is_no_report_stays(run: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "thesis.html").write_text("<!DOCTYPE html><title>My thesis, by fedsim</title>")
    (tmp_path / "link.html").symlink_to(run / "report.html")
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    for name, problem in (
        ("thesis.html", "is there, and is no report of fedsim"),
        ("link.html", "is a link"),
        ("folder.html", "is a folder"),
        ("pipe.html", "is a pipe"),
    ):
        path = tmp_path / name
        said = refusal(capsys, run, "--out", path)
        assert said == f"{path} {problem}; choose another place for the report with --out"
    assert (tmp_path / "thesis.html").read_text() == "<!DOCTYPE html><title>My thesis, by fedsim</title>"
    assert not (run / "report.html").exists()


def test_a_place_that_cannot_be_is_refused_before_anything_is_written(
    run: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").touch()
    assert refusal(capsys, run, "--out", tmp_path / "file" / "x.html").startswith(
        f"{tmp_path / 'file'} is not a folder"
    )
    assert "must end in .html" in refusal(capsys, run, "--out", tmp_path / "page.pdf")
    assert refusal(capsys, run, run) == "several run folders share a report: say where to put it with --out FILE.html"
    assert "is named twice" in refusal(capsys, run, run, "--out", tmp_path / "both.html")
    assert "there is no run folder" in refusal(capsys, tmp_path / "rnu")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "run"]


def test_a_folder_for_the_report_is_made(run: Path, tmp_path: Path, text: str) -> None:
    assert main(["report", str(run), "--out", str(tmp_path / "pages" / "small.html")]) == 0
    assert (tmp_path / "pages" / "small.html").read_text() == text


def test_folders_without_a_run_are_passed_over(run: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["report", str(run), str(tmp_path / "empty"), "--out", str(tmp_path / "one.html")]) == 0
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'one.html'}\n"
    assert err == f"Remark: passed over: {tmp_path / 'empty'} is no run folder: it has no manifest.json\n"


def test_missing_libraries_are_named_and_nothing_else_is_done(
    run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "find_spec", lambda module: None)
    assert refusal(capsys, run) == (
        "a report needs libraries that are not installed; install them: "
        "pip install 'altair>=6' 'vl-convert-python>=1.9' 'jinja2>=3.1'"
    )


def test_only_a_report_loads_the_libraries_of_reports(run: Path) -> None:
    code = (
        "import sys\nfrom fedsim.cli import main\n"
        f"assert not main(['compare', {str(run)!r}]) and not main(['--help'])\n"
        "print({'altair', 'jinja2', 'vl_convert', 'fedsim.report.page'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"
