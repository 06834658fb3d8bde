"""What was taken for what, drawn: a panel for each protocol, with the shares of each true class."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tiers import mostly_long
from tiny_results import counted

from fedsim.viz.confusion_figures import NUMBERED, confusion, named_confusion_figures


def drawn(table: pd.DataFrame) -> tuple[np.ma.MaskedArray, dict[tuple[int, int], str]]:
    """The shares in one panel, and what is written into cells (row, column)."""
    ax = confusion(table, Figure().add_subplot())
    cells = {(round(text.get_position()[1]), round(text.get_position()[0])): text.get_text() for text in ax.texts}
    return np.ma.asarray(ax.images[0].get_array()), cells


def test_rows_are_shares_of_the_true_class_and_seeds_add_up() -> None:
    table = pd.concat(
        [counted("fedavg", 1, [[3, 1, 0], [0, 0, 2], [0, 0, 5]]), counted("fedavg", 2, [[0, 4, 0], [0, 2, 0]])]
    )
    shares, cells = drawn(table)
    assert shares.tolist() == [[3 / 8, 5 / 8, 0], [0, 0.5, 0.5], [0, 0, 1.0]]
    assert cells == {(0, 0): ".38", (0, 1): ".62", (1, 1): ".50", (1, 2): ".50", (2, 2): "1"}


def test_classes_that_are_nowhere_are_left_out_and_a_row_without_samples_is_empty() -> None:
    shares, cells = drawn(counted("fedavg", 1, [[4, 0, 0, 0], [0] * 4, [0, 0, 1, 1]], ("a", "b", "c", "d")))
    assert shares.tolist() == [[1, 0, 0], [0, 0.5, 0.5], [None, None, None]], "a, c, and d, which is predicted only"
    assert set(cells) == {(0, 0), (1, 1), (1, 2)}


@pytest.mark.parametrize(("classes", "numbered"), [(NUMBERED, True), (NUMBERED + 1, False)])
def test_cells_have_numbers_where_these_can_be_read(classes: int, numbered: bool) -> None:
    names = [f"class {number}" for number in range(classes)]
    _, cells = drawn(counted("fedavg", 1, np.eye(classes, dtype=int).tolist(), names))
    assert len(cells) == classes * numbered


def figures(table: pd.DataFrame, protocols: list[str]) -> dict[str, Figure]:
    return dict(named_confusion_figures(table, protocols))


def test_each_test_set_has_a_figure_and_each_protocol_a_panel() -> None:
    table = pd.concat(
        [
            counted("fedgsp", 1, [[1, 0], [0, 1]], test_set="own"),
            counted("fedavg", 1, [[1, 1], [0, 1]], test_set="own"),
            counted("fedavg", 1, [[1, 0], [0, 3]], test_set="global"),
        ]
    )
    found = figures(table, ["fedavg", "diverged", "fedgsp"])
    titles = {name: [ax.get_title(loc="left") for ax in figure.axes if ax.images] for name, figure in found.items()}
    assert titles == {"confusion": ["fedavg", "fedgsp"], "confusion_global": ["fedavg"]}
    bar = found["confusion"].axes[-1]
    assert bar.get_ylabel() == "share of the true class" and bar.get_ylim() == (0.0, 1.0)


SHAPES = [(2, 1), (4, 5), (12, 3), (35, 2), (62, 1), (62, 5), (256, 1)]
LONG = "a rather long name {}"


@pytest.mark.parametrize(
    ("classes", "protocols", "name"),
    mostly_long([(*shape, name) for shape in SHAPES for name in ("{}", LONG)], now=[(4, 5, LONG), (62, 1, "{}")]),
)
def test_nothing_covers_anything(classes: int, protocols: int, name: str) -> None:
    """Names of classes stay apart from each other, and panels from titles and bar."""
    names = [name.format(number) for number in range(classes)]
    titles = [f"protocol {number}" for number in range(protocols)]
    table = pd.concat([counted(title, 1, np.eye(classes, dtype=int).tolist(), names) for title in titles])
    (figure,) = figures(table, titles).values()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for ax in (ax for ax in figure.axes if ax.images):
        for labels, side in ((ax.get_xticklabels(), "x"), (ax.get_yticklabels(), "y")):
            assert labels and all(label.get_fontsize() >= 4.5 for label in labels)
            boxes = [label.get_window_extent() for label in labels]
            ends = [(getattr(box, f"{side}0"), getattr(box, f"{side}1")) for box in boxes]
            ends.sort()
            assert all(end <= begin + 1 for (_, end), (begin, _) in pairwise(ends)), side
    panels = [ax.get_tightbbox() for ax in figure.axes if ax.get_visible() and ax.axison]
    for number, panel in enumerate(panels):
        assert not any(panel.overlaps(other) for other in panels[number + 1 :])
        assert figure.bbox.x0 <= panel.x0 and panel.x1 <= figure.bbox.x1 and figure.bbox.y0 <= panel.y0
        assert panel.y1 <= figure._suptitle.get_window_extent().y0
