"""Figures as files: the same results, the same bytes; and nothing of matplotlib's own changes."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from math import inf, nan
from pathlib import Path

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from tiers import mostly_long
from tiny_results import counted, rounds_of, summary_of, write_results

from fedsim.errors import UserError
from fedsim.experiment.compare import run_names
from fedsim.experiment.figures import save_figures
from fedsim.experiment.results import Results
from fedsim.viz.overview import named_figures

COSTS = {"traffic_by_protocol", "time_by_protocol", "overview"}
CURVES = {"accuracy_over_time", "accuracy_over_bytes", "accuracy_over_rounds", "loss_over_rounds"}
LEARNING = {*CURVES, "accuracy_by_protocol", "front"}


def two_protocols(folder: Path, accuracy: float = 0.8, name: str = "tiny") -> Results:
    runs = [rounds_of(protocol, seed, [0.2, accuracy]) for protocol in ("fedavg", "fedprox") for seed in (1, 2)]
    return write_results(folder, runs, name=name)


@pytest.mark.parametrize(
    "file_format", [*(pytest.param(name, marks=pytest.mark.long) for name in ("png", "pdf")), "svg"]
)
def test_equal_results_give_equal_bytes(tmp_path: Path, file_format: str) -> None:
    results = two_protocols(tmp_path / "run")
    assert file_format in ("png", "svg", "pdf")
    first = save_figures([results], tmp_path / "first", file_format)
    second = save_figures([results], tmp_path / "second", file_format)
    assert {path.name for path in first} == {f"{name}.{file_format}" for name in LEARNING | COSTS}
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    if file_format == "pdf":  # letters stay letters: TrueType, not outlines
        assert all(b"/FontFile2" in path.read_bytes() for path in first)


def test_without_learning_only_costs_are_drawn(tmp_path: Path) -> None:
    results = write_results(tmp_path / "run", [rounds_of("fedavg", 1, [nan, nan])])
    assert {path.stem for path in save_figures([results], tmp_path / "figures")} == COSTS


def test_several_runs_share_their_figures(tmp_path: Path) -> None:
    runs = [two_protocols(tmp_path / "a", name="park"), two_protocols(tmp_path / "b", accuracy=0.6, name="hall")]
    counted("fedavg", 1, [[1, 1], [0, 2]]).to_csv(tmp_path / "b" / "confusion.csv", index=False)
    paths = {path.stem: path for path in save_figures(runs, tmp_path / "figures", "svg")}
    drawing = paths["accuracy_over_time"].read_text()
    for title in ("fedavg", "fedprox", "park", "hall"):
        assert drawing.count(f"<!-- {title} -->") == 1  # matplotlib writes the text beside its outline
    assert [name for name in paths if name.startswith("confusion")] == ["confusion-2"], "what was counted is one run's"


def of_many(runs: int, protocols: int, seeds: int = 2, long: str = "") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables of so many runs, each with so many protocols; *long* is part of all their names."""
    rounds = [
        rounds_of(f"protocol{long}_{p}", seed, [0.2, 0.8 - 0.01 * run], round_s=10.0 + run + seed).assign(
            run=f"{long}{run}"
        )
        for run in range(runs)
        for p in range(protocols)
        for seed in range(seeds)
    ]
    summary = pd.DataFrame([{**summary_of(part), "run": part["run"].iloc[0]} for part in rounds])
    together = pd.concat(rounds)
    return (together, summary) if runs > 1 else (together.drop(columns="run"), summary.drop(columns="run"))


def one(rounds: pd.DataFrame, summary: pd.DataFrame, name: str) -> Figure:
    """The figure of this *name*; no other is drawn after it."""
    return next(figure for own, figure in named_figures(rounds, summary) if own == name)


LONG = " of which somebody/gave/a_long-name, as people do"
SIZES = [(1, 1, ""), (1, 3, ""), (1, 12, ""), (2, 4, ""), (3, 4, ""), (8, 1, ""), (6, 3, ""), (2, 8, ""), (1, 4, LONG)]
SIZES += [(3, 4, LONG), (12, 1, LONG), (5, 2, LONG)]


@pytest.mark.parametrize(("runs", "protocols", "long"), mostly_long(SIZES, now=[(1, 12, ""), (5, 2, LONG)]))
def test_nothing_is_covered_by_a_legend_and_no_text_by_another(runs: int, protocols: int, long: str) -> None:
    for name, figure in named_figures(*of_many(runs, protocols, long=long)):
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        shown = [ax for ax in figure.axes if ax.axison]
        legends = [legend.get_window_extent() for legend in figure.legends]
        labels = [ax.xaxis.label.get_window_extent() for ax in shown if ax.get_xlabel()]
        titles = [ax._left_title.get_window_extent() for ax in shown]
        rows = [label.get_window_extent() for ax in shown for label in ax.get_yticklabels() if label.get_visible()]
        for box in [*legends, *labels, *titles, *rows]:
            assert inside(box, figure.bbox), name
        for legend in legends:
            assert not any(legend.overlaps(ax.get_tightbbox()) for ax in shown), name
        for texts in (labels, titles, rows if "by_protocol" in name else []):
            assert not any(one.overlaps(other) for one, other in combinations(texts, 2)), name
        for ax in shown:
            if ax.texts:  # bars
                assert ax.get_window_extent().width > 0.5 * figure.bbox.width / (3 if name == "overview" else 1), name
            else:
                assert ax.get_window_extent().height > figure.dpi, name  # an inch


def inside(box: Bbox, whole: Bbox) -> bool:
    return bool(whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1)


def test_the_text_of_a_bar_stands_beside_its_whisker() -> None:
    drawn = dict(named_figures(*of_many(1, 3, seeds=3)))
    for name in ("time_by_protocol", "overview"):
        FigureCanvasAgg(drawn[name])
        drawn[name].draw_without_rendering()
        (ax,) = (ax for ax in drawn[name].axes if ax.get_title(loc="left") == "Simulated time")
        ends = [ax.transData.transform(whisker.get_segments()[0])[1, 0] for whisker in ax.collections]
        assert len(ends) == 3
        assert all(text.get_window_extent().x0 > end - 0.1 for text, end in zip(ax.texts, ends, strict=True))  # pixels


def test_many_runs_of_several_protocols_have_a_panel_each_and_equal_axes() -> None:
    drawn = dict(named_figures(*of_many(6, 3)))
    panels = [ax for ax in drawn["accuracy_over_time"].axes if ax.axison]
    assert [ax.get_title(loc="left") for ax in panels] == [f"{run}" for run in range(6)]
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in panels}) == 1
    colours = [tuple(line.get_color() for line in ax.get_lines()) for ax in panels]
    assert len(set(colours)) == 1 and len(set(colours[0])) == 3
    assert len(drawn["overview"].axes) == 3  # bars alone


def test_panels_have_one_unit_for_all_runs_and_say_it_below_each_column() -> None:
    rounds, summary = of_many(5, 2)
    rounds.loc[rounds["run"] == "4", "sim_time_s"] *= 6  # minutes, while the others take seconds
    panels = [ax for ax in one(rounds, summary, "accuracy_over_time").axes if ax.axison]
    assert [ax.get_xlabel() for ax in panels] == ["", "", *["simulated time, min"] * 3]
    panels[0].figure.draw_without_rendering()
    texts = [[label.get_text() for label in ax.get_xticklabels()] for ax in panels[2:]]
    assert texts[0] == texts[1] == texts[2] and texts[0]
    assert all(label.get_visible() for ax in panels[2:] for label in ax.get_xticklabels())


def test_a_model_that_diverged_is_named_below_panels_too() -> None:
    rounds, summary = of_many(5, 2)
    lost = (rounds["run"] == "3") & (rounds["protocol"] == "protocol_1") & (rounds["round"] == 2)
    rounds.loc[lost & (rounds["seed"] == 0), ["accuracy", "loss"]] = [nan, inf]
    (legend,) = one(rounds, summary, "accuracy_over_time").legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["protocol_0", "protocol_1", "protocol_1, 3 (1 of 2 seeds diverged)"]


def test_no_run_and_a_run_named_twice_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    run = two_protocols(tmp_path / "run")
    for results, problem in (
        ([], "no run is there to draw"),
        ([run, run], "run is named twice, and its seeds would count"),
    ):
        with pytest.raises(UserError, match=problem):
            save_figures(results, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


def test_a_scenario_that_is_called_as_the_folder_of_another_run_stays_apart(tmp_path: Path) -> None:
    runs = [two_protocols(tmp_path / name) for name in "ab"]
    runs.append(two_protocols(tmp_path / "c", name=str(tmp_path / "a")))
    assert len(set(run_names(runs))) == 3


def test_matplotlib_is_left_as_it_was(tmp_path: Path) -> None:
    before = mpl.rcParams.copy()
    save_figures([write_results(tmp_path / "run", [rounds_of("fedavg", 1, [nan, nan])])], tmp_path / "figures")
    assert mpl.rcParams.copy() == before


def test_no_window_system_is_asked_for(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "run", [rounds_of("fedavg", 1, [nan, nan])]).folder
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from fedsim import load_results\n"
        "from fedsim.experiment.figures import save_figures\n"
        f"save_figures([load_results({str(folder)!r})], Path({str(tmp_path / 'figures')!r}))\n"
        "assert 'matplotlib.pyplot' not in sys.modules, 'pyplot chooses a backend'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"MPLBACKEND": "tkagg", "PATH": ""})
