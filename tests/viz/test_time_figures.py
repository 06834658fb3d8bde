"""The parts of a round: one name and one colour in figures and in reports, which no protocol has."""

from __future__ import annotations

import pandas as pd
from matplotlib.colors import to_hex, to_rgb

from fedsim.metrics.critical_path import PARTS
from fedsim.viz.style import COLOURS, PART_COLOURS
from fedsim.viz.time_figures import named_time_figures
from fedsim.viz.time_tables import TITLES


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_each_part_has_a_colour_that_no_protocol_has() -> None:
    assert tuple(PART_COLOURS) == tuple(TITLES) == PARTS
    colours = [to_hex(colour) for colour in (*PART_COLOURS.values(), *COLOURS)]
    assert len(set(colours)) == len(colours)


def test_the_figure_has_these_names_and_colours_and_letters_that_are_read() -> None:
    shares = dict.fromkeys(PARTS, 1 / len(PARTS))
    table = pd.DataFrame([{"run": "a", "protocol": "fedavg", "round_s": 9.0, **shares}])
    ((_, figure),) = named_time_figures(table, pd.DataFrame())
    (legend,) = figure.legends
    names, patches = [text.get_text() for text in legend.get_texts()], legend.get_patches()
    shown = {name: to_hex(patch.get_facecolor()) for name, patch in zip(names, patches, strict=True)}
    assert shown == {TITLES[part]: colour for part, colour in PART_COLOURS.items()}
    (ax,) = figure.axes
    written = [text for text in ax.texts if text.get_text() == "11%"]
    for part, text in zip(PARTS, written, strict=True):
        letters, ground = (luminance(colour) + 0.05 for colour in (str(text.get_color()), PART_COLOURS[part]))
        assert max(letters, ground) / min(letters, ground) > 3, part
