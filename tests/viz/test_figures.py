"""Figures show the tables' own numbers, in units that the axes name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from tiny_results import rounds_of, summary_of

from fedsim.metrics.intervals import half_width
from fedsim.viz import figures
from fedsim.viz.style import COLOURS, looks

TWO = pd.concat([rounds_of("fedavg", 1, [0.2, 0.6, 0.8]), rounds_of("fedprox", 1, [0.3, nan, 0.9])])
LEARNING = (
    figures.accuracy_over_time,
    figures.accuracy_over_bytes,
    figures.accuracy_over_rounds,
    figures.loss_over_rounds,
)
COSTS = (figures.traffic_by_protocol, figures.time_by_protocol, figures.accuracy_by_protocol)


def axes() -> Axes:
    return Figure().add_subplot()


def curve(ax: Axes, label: str) -> list[tuple[float, float]]:
    (line,) = (line for line in ax.get_lines() if line.get_label() == label)
    return [tuple(point) for point in np.asarray(line.get_xydata())]


def legend_of(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def legend_title(ax: Axes) -> str:
    legend = ax.get_legend()
    assert legend is not None
    return legend.get_title().get_text()


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


def test_a_logarithmic_axis_of_little_more_than_a_decade_has_more_than_two_marks() -> None:
    near, far = (rounds_of("slow", 1, [0.9], round_s=round_s, round_bytes=round_s * 1e5) for round_s in (99, 121))
    first = rounds_of("quick", 1, [0.9], round_s=10.0, round_bytes=1e6)
    for draw, expected in (
        (figures.accuracy_over_time, ["10 s", "20 s", "30 s", "1 min", "2 min"]),
        (figures.accuracy_over_bytes, ["1 MB", "2 MB", "5 MB", "10 MB"]),
    ):
        assert draw(pd.concat([first, near]), axes()).get_xscale() == "linear"
        ax = draw(pd.concat([first, far]), axes())
        ax.figure.draw_without_rendering()
        assert [label.get_text() for label in ax.get_xticklabels()] == expected
        assert ax.get_xlabel().endswith(" (logarithmic)")


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


def test_56_protocols_look_different() -> None:
    names = [f"protocol-{number}" for number in range(56)]
    assert len(set(looks(names).values())) == 56
    without_colour = {(look.line, look.marker) for look in looks(names[:8]).values()}
    assert len(without_colour) == 8


def of_runs(runs: Sequence[str], protocols: Sequence[str]) -> pd.DataFrame:
    return pd.concat(rounds_of(protocol, 1, [0.2, 0.6]).assign(run=run) for run in runs for protocol in protocols)


def looks_of(ax: Axes) -> dict[str, tuple[Any, Any, Any]]:
    return {
        str(line.get_label()): (line.get_color(), line.get_linestyle(), line.get_marker()) for line in ax.get_lines()
    }


def test_colour_and_marker_are_the_protocol_in_all_runs_and_the_line_is_the_run() -> None:
    ax = figures.accuracy_over_time(of_runs(["day", "night"], ["fedavg", "stp"]), axes())
    drawn = looks_of(ax)
    assert list(drawn) == ["fedavg, day", "stp, day", "fedavg, night", "stp, night"]
    assert {name: (colour, marker) for name, (colour, _, marker) in drawn.items()} == {
        "fedavg, day": (COLOURS[0], "o"),
        "fedavg, night": (COLOURS[0], "o"),
        "stp, day": (COLOURS[1], "s"),
        "stp, night": (COLOURS[1], "s"),
    }
    assert [line for _, line, _ in drawn.values()] == ["-", "-", "--", "--"]
    assert legend_of(ax) == ["fedavg", "stp", "day", "night"]
    assert legend_title(ax) == "colour and marker: protocol; line: run"


def test_runs_of_one_protocol_each_have_an_entry_each_and_equal_protocols_an_equal_colour() -> None:
    parts = [("day", "fedavg"), ("night", "stp"), ("dusk", "fedavg")]
    ax = figures.accuracy_over_time(pd.concat(of_runs([run], [protocol]) for run, protocol in parts), axes())
    drawn = looks_of(ax)
    assert legend_of(ax) == list(drawn) == ["fedavg, day", "stp, night", "fedavg, dusk"]
    assert drawn["fedavg, day"] == (COLOURS[0], "-", "o") and drawn["fedavg, dusk"] == (COLOURS[0], "--", "o")
    assert drawn["stp, night"] == (COLOURS[1], "-", "s")


def test_where_only_one_protocol_learned_it_keeps_the_colour_that_its_bars_have() -> None:
    styles = looks(["stp", "fedavg"])
    drawn = looks_of(figures.accuracy_over_time(of_runs(["day", "night"], ["fedavg"]), axes(), styles))
    assert [colour for colour, _, _ in drawn.values()] == [styles["fedavg"].colour] * 2


def test_twelve_long_curves_differ_also_without_colour() -> None:
    rounds = pd.concat(rounds_of(f"protocol_{number}", 1, [0.5] * 200) for number in range(12))
    lines = figures.accuracy_over_time(rounds, axes()).get_lines()
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == 8  # these are all there are
    assert len({(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines}) == 12
    firsts, steps = zip(*(line.get_markevery() for line in lines), strict=True)
    assert set(steps) == {25} and len(set(firsts)) == 12  # no marker covers another one


def test_colour_is_the_run_where_all_runs_have_one_protocol() -> None:
    ax = figures.accuracy_over_time(of_runs([f"run {number}" for number in range(12)], ["fedavg"]), axes())
    assert len(set(looks_of(ax).values())) == 12
    assert legend_of(ax) == [f"run {number}" for number in range(12)]
    assert legend_title(ax) == "fedavg; colour, line and marker: run"


def test_a_model_that_diverged_in_one_of_several_runs_is_named_with_its_run() -> None:
    lost = rounds_of("stp", 1, [0.2, nan]).assign(loss=[0.8, np.inf], run="night")
    ax = figures.accuracy_over_time(pd.concat([of_runs(["day"], ["fedavg", "stp"]), lost]), axes())
    assert legend_of(ax)[-1] == "stp, night (diverged)"


@pytest.mark.parametrize("legend", [True, False])
def test_a_legend_stands_beside_the_axes_or_is_left_out(legend: bool) -> None:
    ax = Figure(layout="constrained").add_subplot()
    figures.accuracy_over_time(TWO, ax, legend=legend)
    ax.figure.draw_without_rendering()
    found = ax.get_legend()
    assert (found is not None) == legend
    assert found is None or found.get_window_extent().x0 >= ax.get_window_extent().x1


def test_bars_of_several_runs_stand_under_the_name_of_their_run() -> None:
    rounds = of_runs(["day", "night"], ["fedavg", "stp"])
    summary = pd.DataFrame([{**summary_of(part), "run": key[0]} for key, part in rounds.groupby(["run", "protocol"])])
    ax = figures.time_by_protocol(summary, axes())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["day", "fedavg", "stp", "night", "fedavg", "stp"]
    colours = [patch.get_facecolor() for patch in ax.patches]
    assert colours[:2] == colours[2:]


def test_a_run_is_named_once_above_its_bars_whatever_it_is_called() -> None:
    rounds = of_runs(["_day", "$n$"], ["fedavg", "stp"])
    summary = pd.DataFrame([{**summary_of(part), "run": key[0]} for key, part in rounds.groupby(["run", "protocol"])])
    labels = [label.get_text().strip() for label in figures.time_by_protocol(summary, axes()).get_yticklabels()]
    assert labels == [r"\$n\$", "fedavg", "stp", "_day", "fedavg", "stp"]


def test_a_mean_of_some_seeds_says_of_how_many() -> None:
    rows = [summary_of(rounds_of("fedavg", seed, [0.5]), final_accuracy=score) for seed, score in enumerate([nan, 0.5])]
    ax = figures.accuracy_by_protocol(pd.DataFrame(rows), axes())
    assert [text.get_text().strip() for text in ax.texts] == ["0.500 (1 of 2 seeds)"]


def test_a_legends_title_shows_a_protocols_name_as_it_is() -> None:
    ax = figures.accuracy_over_time(of_runs(["day", "night"], ["a$^2$"]), axes())
    assert legend_title(ax) == r"a\$^2\$; colour, line and marker: run"


def test_whiskers_reach_over_the_interval_of_the_mean() -> None:
    seconds = [10.0, 20.0, 60.0]
    rows = [{**summary_of(rounds_of("fedavg", seed, [0.5])), "sim_time_s": s} for seed, s in enumerate(seconds, 1)]
    ax = figures.time_by_protocol(pd.DataFrame(rows[1:]), axes())
    ((low, high),) = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    assert (low, high) == (0.0, pytest.approx(40.0 + half_width(seconds[1:])))  # no bar is shorter than nothing
    assert ax.get_xlabel() == "simulated time, s\nmean and 95 % interval over seeds"
    ax = figures.time_by_protocol(pd.DataFrame(rows), axes())
    assert ax.collections[0].get_segments()[0][1, 0] == pytest.approx(30.0 + half_width(seconds))


def test_no_whisker_of_an_accuracy_reaches_beyond_one() -> None:
    rows = [summary_of(rounds_of("fedavg", seed, [score])) for seed, score in enumerate([0.4, 0.9])]
    (whisker,) = figures.accuracy_by_protocol(pd.DataFrame(rows), axes()).collections
    assert whisker.get_segments()[0][:, 0].tolist() == [0.0, 1.0]
    rows = [{**row, "final_accuracy": nan, "rmse": 1 + row["seed"]} for row in rows]
    (whisker,) = figures.accuracy_by_protocol(pd.DataFrame(rows), axes()).collections
    assert whisker.get_segments()[0][1, 0] == pytest.approx(1.5 + half_width([1.0, 2.0]))


def test_an_error_is_drawn_in_its_unit_where_all_have_one() -> None:
    rows = [{**summary_of(rounds_of("fedavg", seed, [nan])), "rmse": 0.2, "rmse_cycles": 25.0} for seed in (1, 2)]
    ax = figures.accuracy_by_protocol(pd.DataFrame(rows), axes())
    assert (ax.get_xlabel(), ax.patches[0].get_width()) == ("test error (RMSE, cycles)", 25.0)
    rounds = rounds_of("fedavg", 1, [nan, nan]).assign(loss=0.04, rmse=[0.4, 0.2], rmse_cycles=[50.0, 25.0])
    ax = figures.accuracy_over_rounds(rounds, axes())
    assert (ax.get_ylabel(), ax.lines[0].get_ydata().tolist()) == ("test error (RMSE, cycles)", [50.0, 25.0])
    older = pd.concat([rounds, rounds.drop(columns="rmse_cycles").assign(protocol="older")])
    assert figures.accuracy_over_rounds(older, axes()).get_ylabel() == "test error (RMSE)"


@pytest.mark.parametrize("seconds", [[10.0], [10.0, 10.0]], ids=["one seed", "equal seeds"])
def test_without_an_interval_there_is_no_whisker(seconds: list[float]) -> None:
    rows = [{**summary_of(rounds_of("fedavg", seed, [0.5])), "sim_time_s": s} for seed, s in enumerate(seconds, 1)]
    ax = figures.time_by_protocol(pd.DataFrame(rows), axes())
    assert not ax.collections
    assert ax.get_xlabel() == "simulated time, s"


def test_bars_are_uplink_then_downlink_and_means_over_seeds() -> None:
    runs = [rounds_of("fedavg", 1, [0.5], round_bytes=3e6), rounds_of("fedavg", 2, [0.5], round_bytes=9e6)]
    ax = figures.traffic_by_protocol(pd.DataFrame([summary_of(run) for run in runs]), axes())
    uplink, downlink = ax.patches
    assert (uplink.get_x(), uplink.get_width()) == (0, pytest.approx(4.0))  # two thirds of 6 MB
    assert (downlink.get_x(), downlink.get_width()) == (pytest.approx(4.0), pytest.approx(2.0))
    assert ax.get_xlabel() == "uplink (dark), downlink (light), MB\nmean and 95 % interval over seeds"
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
    assert len(curve(ax, "fedavg")) == 2
    assert curve(ax, "fedprox") == []
    crosses = [line for line in ax.get_lines() if line.get_marker() == "X"]
    assert [len(line.get_xdata()) for line in crosses] == [1, 0]
    assert np.array_equal(crosses[0].get_xydata()[0], curve(ax, "fedavg")[-1])
    (line,) = (line for line in ax.get_lines() if line.get_label() == "fedavg")
    assert crosses[0].get_markersize() > 2 * line.get_markersize() and crosses[0].get_zorder() > line.get_zorder()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "fedavg (diverged)", "fedprox (diverged)", "stp"
    ]  # fmt: skip


def test_the_legend_counts_the_seeds_that_diverged() -> None:
    lost = rounds_of("fedavg", 2, [0.2, nan]).assign(loss=[0.8, np.inf])
    ax = figures.accuracy_over_rounds(pd.concat([rounds_of("fedavg", 1, [0.2, 0.6]), lost]), axes())
    assert curve(ax, "fedavg") == [(1, 0.2)]
    assert legend_of(ax) == ["fedavg (1 of 2 seeds diverged)"]
