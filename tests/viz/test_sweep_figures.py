"""Figures of sweeps: every value has its place, every combination its panel, and no label covers another."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from fedsim.viz.save import save_figure
from fedsim.viz.sweep_figures import sweep_figures
from fedsim.viz.sweep_panels import MOST_PANELS

RADIOS = ["nb_iot_nb1", "lte_m_m1", "nr_100mhz_private"]
FRACTIONS = [0.3, 0.1, 0.2]


def compared(keys: Mapping[str, Sequence[Any]], protocols: Sequence[str] = ("fedavg", "fedgsp")) -> pd.DataFrame:
    """Accuracies 0.01, 0.02, ... in the order of rows; times and bytes a thousand and a million times as much."""
    rows = []
    for number, (*values, protocol) in enumerate(itertools.product(*keys.values(), protocols), start=1):
        row: dict[str, Any] = dict(zip(keys, values, strict=True)) | {"run": "r", "protocol": protocol}
        row |= {"accounting": "event", "n": 3}
        for metric, scale in (("final_accuracy", 0.01), ("sim_time_s", 10.0), ("transfer_bytes", 1e4)):
            row |= {f"{metric}_mean": number * scale, f"{metric}_half_width": scale, f"{metric}_n": 3}
        rows.append(row)
    return pd.DataFrame(rows)


def drawn(table: pd.DataFrame, keys: Mapping[str, Sequence[Any]]) -> dict[str, Figure]:
    return dict(sweep_figures(table, list(keys)))


def one(table: pd.DataFrame, keys: Mapping[str, Sequence[Any]], name: str) -> Figure:
    """The figure of this *name*; no other is drawn after it."""
    return next(figure for own, figure in sweep_figures(table, list(keys)) if own == name)


def test_one_key_has_lines_and_no_heat_map() -> None:
    keys = {"a.fraction": FRACTIONS}
    assert list(drawn(compared(keys), keys)) == ["lines-accuracy", "lines-time", "lines-traffic"]


def test_a_line_goes_through_the_means_in_the_order_of_its_key() -> None:
    keys = {"a.fraction": FRACTIONS}
    ax, *_ = one(compared(keys), keys, "lines-accuracy").axes
    line = ax.containers[0].lines[0]  # type: ignore[attr-defined]
    assert list(line.get_xdata()) == [0.1, 0.2, 0.3]
    assert list(line.get_ydata()) == [0.03, 0.05, 0.01]


def test_numbers_are_the_axis_and_other_keys_have_panels() -> None:
    keys = {"radio.profile": RADIOS, "a.fraction": FRACTIONS}
    figure = one(compared(keys), keys, "lines-accuracy")
    panels = [ax.get_title("left") for ax in figure.axes if ax.get_title("left")]
    assert panels == [f"radio.profile={radio}" for radio in RADIOS]


def test_values_far_apart_are_on_a_logarithmic_axis() -> None:
    keys = {"a.mu": [0.001, 0.1, 10.0]}
    ax, *_ = one(compared(keys), keys, "lines-accuracy").axes
    assert ax.get_xscale() == "log"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.001", "0.1", "10"]


def test_a_heat_map_has_the_number_of_each_cell() -> None:
    keys = {"radio.profile": RADIOS, "a.fraction": FRACTIONS}
    figure = one(compared(keys), keys, "heatmap-accuracy")
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "0.2", "0.3"]
    assert [label.get_text() for label in ax.get_yticklabels()] == RADIOS
    texts = {(text.get_position()): text.get_text() for text in ax.texts}
    assert texts[0, 0] == "0.0300" and texts[2, 0] == "0.0100" and texts[1, 2] == "0.170"
    assert figure.axes[1].texts[0].get_text() == "0.0400", "the other protocol"


def test_cells_that_lie_far_apart_have_logarithmic_shades() -> None:
    keys = {"radio.profile": RADIOS, "a.fraction": FRACTIONS}
    table = compared(keys)
    table.loc[0, "sim_time_s_mean"] = 0.1
    labels = [figure.axes[-1].get_ylabel() for figure in drawn(table, keys).values() if "time" in figure.get_suptitle()]
    assert "simulated time, min, mean over seeds (logarithmic)" in labels


def test_what_is_not_known_is_a_dash() -> None:
    keys = {"radio.profile": RADIOS[:2], "a.fraction": FRACTIONS[:2]}
    table = compared(keys)
    table.loc[0, ["final_accuracy_mean", "final_accuracy_half_width", "final_accuracy_n"]] = [nan, nan, 0]
    assert "–" in {text.get_text() for text in one(table, keys, "heatmap-accuracy").axes[0].texts}


def test_a_third_key_has_a_heat_map_for_each_value() -> None:
    keys = {"radio.profile": RADIOS[:2], "a.fraction": FRACTIONS, "b.interval": [1, 5]}
    figures = drawn(compared(keys), keys)
    maps = [name for name in figures if name.startswith("heatmap-accuracy")]
    assert maps == ["heatmap-accuracy-1", "heatmap-accuracy-2"]
    titles = [figures[name].get_suptitle() for name in maps]
    assert titles == [f"Accuracy at the end (radio.profile={radio})" for radio in RADIOS[:2]]


def test_panels_and_figures_are_limited_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedsim.viz.sweep_figures.MOST_FIGURES", 3)
    keys = {"x": [1, 2], "y": [1, 2], "z": [f"v{number}" for number in range(MOST_PANELS)]}
    figures = drawn(compared(keys), keys)
    assert list(figures) == ["lines-accuracy", "heatmap-accuracy-1", "heatmap-accuracy-2"]
    legend = figures["lines-accuracy"].legends[0]
    assert f"{MOST_PANELS} more panels are left out" in legend.get_title().get_text()


def test_what_is_not_varied_has_no_figure() -> None:
    keys = {"a.fraction": [0.1]}
    assert drawn(compared(keys), keys) == {}


@pytest.mark.parametrize(
    "label", ["$x_1$ and <b>", "_hidden", "a label that is much longer than a legend is wide " * 2]
)
def test_labels_are_drawn_as_they_are(tmp_path: Path, label: str) -> None:
    keys = {"radio.profile": [label, "x"], "a.fraction": FRACTIONS}
    for name, figure in drawn(compared(keys, protocols=[label, "fedavg"]), keys).items():
        save_figure(figure, tmp_path / f"{name}.png")  # warnings are errors: nothing is hidden, no letter is missing


def test_equal_sweeps_have_equal_files(tmp_path: Path) -> None:
    keys = {"radio.profile": RADIOS, "a.fraction": FRACTIONS}
    files = [
        save_figure(one(compared(keys), keys, "heatmap-time"), tmp_path / f"{number}.svg").read_bytes()
        for number in (1, 2)
    ]
    assert files[0] == files[1]
