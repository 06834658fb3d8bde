"""Names in figures: without what all share, short enough, apart from each other, and in letters that the font has."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tiny_results import rounds_of

from fedsim.viz import figures
from fedsim.viz.names import fitted, names_apart


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["plant-lte_m", "plant-nb_iot"], ["lte_m", "nb_iot"]),
        (["night_shift_lte", "night_shift_nb"], ["lte", "nb"]),
        (["runs/plant-a", "runs/plant-b"], ["a", "b"]),
        (["lr-0.1", "lr-0.5"], ["0.1", "0.5"]),
        (["v1.lte", "v1.nb"], ["lte", "nb"]),
        (["plant", "plant-a"], ["plant", "plant-a"]),
        (["plant a", "plant a b"], ["a", "a b"]),
        (["planta", "plantb"], ["planta", "plantb"]),
        (["-", "--"], ["-", "--"]),
        (["plant"], ["plant"]),
        ([], []),
    ],
)
def test_names_are_shown_without_the_words_that_all_begin_with(names: list[str], short: list[str]) -> None:
    assert names_apart(names) == short


@given(st.lists(st.text("ab1-_/. ", min_size=1, max_size=8), unique=True, max_size=4))
def test_names_without_their_common_words_stay_apart_and_are_never_empty(names: list[str]) -> None:
    short = names_apart(names)
    assert len(set(short)) == len(names)
    assert all(name.endswith(end) and end for name, end in zip(names, short, strict=True))


@given(st.lists(st.text("ab-_/. \n\u8f66", max_size=20), unique=True, max_size=5))
def test_fitted_names_differ_and_have_at_most_two_short_lines(names: list[str]) -> None:
    shown = fitted(names, 6)
    assert list(shown) == names and len(set(shown.values())) == len(names)
    for text in shown.values():
        lines = text.split("\n")
        assert len(lines) <= 2 and all(len(line) <= 6 + len(" (5)") for line in lines)


def test_long_names_that_differ_in_their_middle_are_numbered() -> None:
    names = [f"{'a' * 30}-{number}-{'z' * 30}" for number in range(3)]
    first, second, third = fitted(names, 10).values()
    assert (second, third) == (f"{first} (2)", f"{first} (3)")
    assert fitted(["a", "a (2)", "\u8f66", "\u95f4"], 10) == {
        "a": "a",
        "a (2)": "a (2)",
        "\u8f66": "?",
        "\u95f4": "? (2)",
    }


def test_a_name_in_letters_that_the_font_lacks_warns_of_nothing() -> None:
    figure = Figure()
    FigureCanvasAgg(figure)
    figures.accuracy_over_time(rounds_of("\u8f66\tb", 1, [0.5, 0.6]), figure.add_subplot())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
