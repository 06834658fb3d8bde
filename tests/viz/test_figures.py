"""Figures show the tables' own numbers, in units that the axes name."""

from __future__ import annotations

from collections.abc import Callable
from math import nan

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from tiny_results import rounds_of, summary_of

from fedsim.viz import figures
from fedsim.viz.style import looks

TWO = pd.concat([rounds_of("fedavg", 1, [0.2, 0.6, 0.8]), rounds_of("fedprox", 1, [0.3, nan, 0.9])])
LEARNING = (
    figures.accuracy_over_time,
    figures.accuracy_over_bytes,
    figures.accuracy_over_rounds,
    figures.loss_over_rounds,
)
COSTS = (figures.traffic_by_protocol, figures.time_by_protocol)


def axes() -> Axes:
    return Figure().add_subplot()


def curve(ax: Axes, label: str) -> list[tuple[float, float]]:
    (line,) = (line for line in ax.get_lines() if line.get_label() == label)
    return [tuple(point) for point in np.asarray(line.get_xydata())]


def test_a_curve_goes_through_the_evaluated_rounds() -> None:
    ax = figures.accuracy_over_time(TWO, axes())
    assert curve(ax, "fedavg") == [(10, 0.2), (20, 0.6), (30, 0.8)]
    assert curve(ax, "fedprox") == [(10, 0.3), (30, 0.9)]
    assert curve(figures.accuracy_over_bytes(TWO, axes()), "fedprox") == [(1e6, 0.3), (3e6, 0.9)]
    assert curve(figures.accuracy_over_rounds(TWO, axes()), "fedprox") == [(1, 0.3), (3, 0.9)]
    assert curve(figures.loss_over_rounds(TWO, axes()), "fedprox") == [(1, 0.7), (3, pytest.approx(0.1))]


@pytest.mark.parametrize(
    ("round_s", "unit"), [(0.001, "ms"), (10.0, "s"), (600.0, "min"), (36_000.0, "h")], ids=["ms", "s", "min", "h"]
)
def test_the_time_axis_has_round_marks_in_a_unit_that_fits(round_s: float, unit: str) -> None:
    rounds = rounds_of("fedavg", 1, [0.2, 0.6, 0.8, 0.9], round_s=round_s)
    ax = figures.accuracy_over_time(rounds, axes())
    ax.figure.draw_without_rendering()
    assert ax.get_xlabel() == f"simulated time, {unit}"
    marks = [label.get_text() for label in ax.get_xticklabels()]
    assert len(marks) >= 3
    assert all(len(mark) <= 5 for mark in marks), marks


def test_protocols_that_end_far_apart_share_a_logarithmic_axis_with_a_unit_at_each_mark() -> None:
    rounds = pd.concat([TWO, rounds_of("centralised", 1, [0.9, 0.95], round_s=0.05, round_bytes=1e3)])
    for draw, expected in (
        (figures.accuracy_over_time, {"100 ms", "1 s", "10 s"}),
        (figures.accuracy_over_bytes, {"1 kB", "10 kB", "100 kB", "1 MB"}),
    ):
        ax = draw(rounds, axes())
        ax.figure.draw_without_rendering()
        assert ax.get_xscale() == "log"
        assert expected <= {label.get_text() for label in ax.get_xticklabels()}
    assert figures.accuracy_over_time(TWO, axes()).get_xscale() == "linear"


def test_no_time_at_all_is_drawn_on_a_linear_axis() -> None:
    rounds = pd.concat([TWO, rounds_of("ideal", 1, [0.9, 0.95], round_s=0.0)])
    assert figures.accuracy_over_time(rounds, axes()).get_xscale() == "linear"


def test_several_seeds_are_their_mean_inside_a_band_from_lowest_to_highest() -> None:
    rounds = pd.concat([rounds_of("fedavg", 1, [0.2, 0.6, 0.7]), rounds_of("fedavg", 2, [0.4, 0.8])])
    ax = figures.accuracy_over_rounds(rounds, axes())
    assert curve(ax, "fedavg") == [(1, pytest.approx(0.3)), (2, pytest.approx(0.7))]  # one seed alone is left out
    (band,) = ax.collections
    corners = {(x, round(y, 9)) for x, y in band.get_paths()[0].vertices}
    assert corners >= {(1, 0.2), (1, 0.4), (2, 0.6), (2, 0.8)}
    assert max(y for _, y in corners) == 0.8


@pytest.mark.parametrize(
    ("others", "title"),
    [
        ([], ""),
        ([0.4, 0.8, 0.9], "mean and range over seeds"),
        ([0.4, nan, 0.9], "mean and range over seeds"),
        ([0.4, 0.8], "mean and range over seeds,\nup to the round that all reached"),
    ],
)
def test_the_legend_says_what_is_shown_of_several_seeds(others: list[float], title: str) -> None:
    rounds = pd.concat([rounds_of("fedavg", 1, [0.2, 0.6, 0.7]), rounds_of("fedavg", 2, others)])
    legend = figures.accuracy_over_time(rounds, axes()).get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == title


def test_a_protocol_has_the_same_colour_in_every_figure() -> None:
    styles = looks(["fedprox", "fedavg"])
    lines = {line.get_label(): line.get_color() for line in figures.accuracy_over_time(TWO, axes(), styles).get_lines()}
    summary = pd.DataFrame([summary_of(rounds) for _, rounds in TWO.groupby("protocol")])
    ax = figures.time_by_protocol(summary, axes(), styles)
    bars = [patch.get_facecolor()[:3] for patch in ax.patches]
    assert bars == [to_rgb(lines["fedavg"]), to_rgb(lines["fedprox"])]
    assert len(set(bars)) == 2


def test_28_protocols_look_different() -> None:
    names = [f"protocol-{number}" for number in range(28)]
    assert len(set(looks(names).values())) == 28


def test_bars_are_uplink_then_downlink_and_means_over_seeds() -> None:
    runs = [rounds_of("fedavg", 1, [0.5], round_bytes=3e6), rounds_of("fedavg", 2, [0.5], round_bytes=9e6)]
    ax = figures.traffic_by_protocol(pd.DataFrame([summary_of(run) for run in runs]), axes())
    uplink, downlink = ax.patches
    assert (uplink.get_x(), uplink.get_width()) == (0, pytest.approx(4.0))  # two thirds of 6 MB
    assert (downlink.get_x(), downlink.get_width()) == (pytest.approx(4.0), pytest.approx(2.0))
    assert ax.get_xlabel().endswith("MB")
    assert [text.get_text().strip() for text in ax.texts] == ["6 MB"]


def test_a_run_in_which_no_round_ended_says_so() -> None:
    row = {**summary_of(rounds_of("fedavg", 1, [0.5])), "sim_time_s": nan}
    ax = figures.time_by_protocol(pd.DataFrame([row]), axes())
    assert [text.get_text().strip() for text in ax.texts] == ["no round has ended"]


def test_a_formulas_bar_is_named_and_hatched() -> None:
    run = rounds_of("fedavg", 1, [0.5])
    summary = pd.DataFrame([summary_of(run), summary_of(run, accounting="formula")])
    ax = figures.time_by_protocol(summary, axes())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["fedavg", "fedavg (formula)"]
    assert [patch.get_hatch() for patch in ax.patches] == [None, "///"]


def test_a_title_is_shown_as_it_is() -> None:
    ax = figures.accuracy_over_rounds(rounds_of("_mine$^2$", 1, [0.5, 0.6]), axes())
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text().strip() for text in legend.get_texts()] == [r"_mine\$^2\$"]
    ax.figure.draw_without_rendering()


@pytest.mark.parametrize("draw", [*LEARNING, *COSTS], ids=lambda draw: draw.__name__)
def test_every_figure_draws_into_the_axes_it_was_given_and_names_both_of_them(draw: object) -> None:
    assert callable(draw)
    ax = axes()
    table = TWO if draw in LEARNING else pd.DataFrame([summary_of(rounds) for _, rounds in TWO.groupby("protocol")])
    assert draw(table, ax) is ax
    assert ax.get_title(loc="left") or ax.get_title()
    assert ax.get_xlabel()
    assert ax.get_ylabel() or [label.get_text() for label in ax.get_yticklabels()] == ["fedavg", "fedprox"]


@pytest.mark.parametrize("draw", LEARNING)
def test_a_curve_of_a_model_that_diverged_ends_in_a_cross_and_the_legend_says_why(
    draw: Callable[[pd.DataFrame, Axes], Axes],
) -> None:
    ends = rounds_of("fedavg", 1, [0.2, 0.6, nan]).assign(loss=[0.8, 0.4, np.inf])
    never = rounds_of("fedprox", 1, [nan]).assign(loss=np.inf)
    ax = draw(pd.concat([ends, never, rounds_of("stp", 1, [0.2, 0.3, 0.4])]), axes())
    assert len(curve(ax, "fedavg (diverged)")) == 2
    assert curve(ax, "fedprox (diverged)") == []
    crosses = [line for line in ax.get_lines() if line.get_marker() == "X"]
    assert [len(line.get_xdata()) for line in crosses] == [1, 0]
    assert np.array_equal(crosses[0].get_xydata()[0], curve(ax, "fedavg (diverged)")[-1])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "fedavg (diverged)", "fedprox (diverged)", "stp"
    ]  # fmt: skip


def test_the_legend_counts_the_seeds_that_diverged() -> None:
    lost = rounds_of("fedavg", 2, [0.2, nan]).assign(loss=[0.8, np.inf])
    ax = figures.accuracy_over_rounds(pd.concat([rounds_of("fedavg", 1, [0.2, 0.6]), lost]), axes())
    assert curve(ax, "fedavg (1 of 2 seeds diverged)") == [(1, 0.2)]
