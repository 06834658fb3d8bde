"""One report of a small study for all tests of this folder, and its page as a tree."""

from __future__ import annotations

import pytest

pytest.importorskip("altair", reason="the libraries of the extra `report` are not installed")
pytest.importorskip("vl_convert", reason="the libraries of the extra `report` are not installed")

from pathlib import Path

from pages_read import Page
from small_studies import hostile_study, small_study

from fedsim.experiment.results import Results
from fedsim.report.page import report_page


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return small_study(tmp_path_factory.mktemp("study") / "run")


@pytest.fixture(scope="session")
def text(study: Results) -> str:
    return report_page([study])


@pytest.fixture(scope="session")
def page(text: str) -> Page:
    return Page(text)


@pytest.fixture(scope="session")
def written(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def hostile_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return report_page([hostile_study(tmp_path_factory.mktemp("hostile") / "run")])


@pytest.fixture(scope="session")
def hostile_report(hostile_text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "hostile.html"
    path.write_text(hostile_text, encoding="utf-8")
    return path
