"""In a notebook a sweep shows how far it is, and its results are a table."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from notebook_cells import Screen, ZMQInteractiveShell
from tiny_results import write_sweep

from fedsim.experiment.sweep.display import SweepDisplay
from fedsim.experiment.sweep.notebook import NotebookSweep
from fedsim.experiment.sweep.points import Point
from fedsim.experiment.sweep.pools.pool import Event
from fedsim.experiment.sweep.results import load_sweep
from fedsim.experiment.sweep.surroundings import sweep_display_for

FIRST, SECOND = (Point(f"{number:012x}", (number,), f"a={number}<b>") for number in (1, 2))


@pytest.mark.parametrize(("progress", "shown"), [(None, NotebookSweep), (True, NotebookSweep), (False, SweepDisplay)])
def test_in_a_notebook_a_sweep_has_bars(
    progress: bool | None, shown: type[SweepDisplay], monkeypatch: pytest.MonkeyPatch, screen: Screen
) -> None:
    shell = SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, "IPython", shell)  # type: ignore[arg-type]
    with sweep_display_for(progress, total=2) as display:
        assert type(display) is shown


def test_a_bar_for_the_sweep_and_one_for_each_point_under_way(screen: Screen) -> None:
    now_s = [100.0]
    bars = NotebookSweep(4, now=lambda: now_s[0])
    with bars.shown():
        bars.begins(there=1, at_once=2)
        assert screen.content["text/plain"] == "sweep: 1/4 points"
        now_s[0] += 1
        bars.happened(FIRST, Event(FIRST.key, "progress", "round 1/2", 0.5))
        page = screen.content["text/html"]
        assert 'value="0.375"></progress> sweep: 1/4 points' in page
        assert 'value="0.500"></progress> a=1&lt;b&gt;: round 1/2' in page and "<b>" not in page
        for point in (FIRST, SECOND, SECOND):
            bars.happened(point, Event(point.key, "done"))
        assert screen.sent == 2  # not for each
    assert screen.content["text/plain"] == "sweep: 4/4 points, real 1 s"
    assert "<progress" not in screen.content["text/html"]


def test_what_has_no_result_stays_and_an_interrupted_sweep_leaves_no_bar(screen: Screen) -> None:
    bars = NotebookSweep(2, "rung 1", now=lambda: 100.0)
    with pytest.raises(KeyboardInterrupt), bars.shown():
        bars.begins(there=0, at_once=1)
        bars.happened(FIRST, Event(FIRST.key, "wrong", "no such radio"))
        raise KeyboardInterrupt
    assert screen.content["text/plain"].splitlines() == ["wrong: a=1<b>", "rung 1: 0/2 points, stopped"]


def test_where_all_points_are_there_that_is_said(screen: Screen) -> None:
    bars = NotebookSweep(2, now=lambda: 100.0)
    with bars.shown():
        bars.begins(there=2, at_once=1)
    assert "nothing is run" in screen.content["text/html"]


def test_results_show_their_table_and_escape_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [["<b>x</b>", 1], ["y", 1]]
    results = load_sweep(write_sweep(Path("study"), ["model.name", "training.epochs"], rows, name="<i>plant"))
    page = results._repr_html_()
    assert page is not None
    assert "<strong>&lt;i&gt;plant</strong>, a sweep of 2 points, in <code>study</code>" in page
    assert "<div>In all rows: training.epochs 1; protocol fedavg; " in page
    assert "<td>&lt;b&gt;x&lt;/b&gt;</td>" in page and "<b>" not in page
    assert page.count("<tr>") + page.count("<tr ") == 3


def test_results_that_are_lost_can_still_be_looked_at(tmp_path: Path) -> None:
    results = load_sweep(write_sweep(tmp_path / "study", ["training.epochs"], [[1]]))
    (tmp_path / "study/points/000000000000/summary.csv").unlink()
    assert results._repr_html_() is None
    assert repr(results).startswith("SweepResults of 1 points in ")
