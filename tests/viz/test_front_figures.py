"""The figure of fronts: points where the means are, and a line of steps through those on the front."""

from __future__ import annotations

from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from tiny_results import rounds_of, summary_of, write_results

from fedsim.experiment.compare import compare
from fedsim.viz.front_figures import front_figure

SPENT = {"quick": (0.5, 60.0, 9e6), "good": (0.9, 300.0, 9e6), "thrifty": (0.4, 300.0, 1e6), "worse": (0.4, 360.0, 2e6)}


def runs(seeds: int = 1) -> list[pd.DataFrame]:
    return [
        rounds_of(name, seed, [accuracy + 0.1 * (seed - 1)], round_s=time_s, round_bytes=spent)
        for name, (accuracy, time_s, spent) in SPENT.items()
        for seed in range(1, seeds + 1)
    ]


def drawn(comparison: pd.DataFrame) -> Figure:
    figure = front_figure(comparison, dict.fromkeys(comparison["protocol"]))
    assert figure is not None
    return figure


def test_the_line_climbs_from_point_to_point_of_the_front_and_on_to_the_edge(tmp_path: Path) -> None:
    table = compare([write_results(tmp_path / "run", runs())]).drop(columns="run")
    for ax, expected in zip(drawn(table).axes, ([(60, 0.5), (300, 0.9)], [(1e6, 0.4), (9e6, 0.9)]), strict=True):
        (line,) = (one for one in ax.lines if one.get_drawstyle() == "steps-post")
        points = [tuple(map(float, point)) for point in np.asarray(line.get_xydata())]
        assert points[:-1] == expected
        assert points[-1] == (ax.get_xlim()[1], 0.9)


def test_points_stand_at_the_means_with_their_intervals_as_bars(tmp_path: Path) -> None:
    table = compare([write_results(tmp_path / "run", runs(seeds=2))]).drop(columns="run")
    ax = drawn(table).axes[0]
    points = [container.lines[0] for container in ax.containers]  # type: ignore[attr-defined]
    assert [tuple(map(float, point.get_xydata()[0])) for point in points] == [
        (row["sim_time_s_mean"], row["final_accuracy_mean"]) for _, row in table.iterrows()
    ]
    _, (wide, high) = ax.containers[0].lines[1], ax.containers[0].lines[2]  # type: ignore[attr-defined]
    (low, top) = (float(point[1]) for point in high.get_segments()[0])
    half = float(table["final_accuracy_half_width"][0])
    assert half > 0.5, "two seeds tell little: the bar would leave what an accuracy can be"
    assert (low, top) == (0.0, 1.0)
    assert len({float(point[0]) for point in wide.get_segments()[0]}) == 1, "times are equal"


def test_errors_are_better_below(tmp_path: Path) -> None:
    rounds = [rounds_of(name, 1, [nan], round_s=time_s) for name, time_s in (("a", 10.0), ("b", 20.0), ("c", 30.0))]
    rows = [summary_of(run, rmse=rmse, loss=rmse**2) for run, rmse in zip(rounds, (0.5, 0.2, 0.3), strict=True)]
    table = compare([write_results(tmp_path / "run", rounds, summary=rows)]).drop(columns="run")
    assert table["front_time"].tolist() == [True, True, False]
    ax = drawn(table).axes[0]
    assert ax.get_ylabel() == "test error (RMSE)" and ax.get_title(loc="left") == "Error against time"


def test_one_point_or_none_needs_no_figure(tmp_path: Path) -> None:
    alone = compare([write_results(tmp_path / "alone", runs()[:1])])
    assert front_figure(alone, ["quick"]) is None
    untrained = [rounds_of(name, 1, [nan]) for name in ("a", "b")]
    assert front_figure(compare([write_results(tmp_path / "untrained", untrained)]), ["a", "b"]) is None


def test_several_runs_share_the_figure_and_the_legend_tells_them_apart(tmp_path: Path) -> None:
    results = [write_results(tmp_path / name, runs(), name=name) for name in ("plant_lte", "plant_5g")]
    several = drawn(compare(results))
    assert [text.get_text() for text in several.legends[0].get_texts()] == [
        *SPENT,
        "plant_lte",
        "plant_5g",
        "Pareto front of the means",
    ]
    alone = [write_results(tmp_path / f"1{name}", runs()[:1], name=name) for name in ("x", "y")]
    assert [text.get_text() for text in drawn(compare(alone)).legends[0].get_texts()][:2] == ["x", "y"]
