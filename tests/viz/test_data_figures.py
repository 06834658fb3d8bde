"""Figures of data show who has what: the numbers of the table, in the order of the factories, and the samples."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import tiers
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.testing import assert_array_equal

from fedsim.data.dataset import FederatedDataset
from fedsim.data.declared import Declared
from fedsim.data.encoding import Affine, OneHot
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError
from fedsim.viz.data_figures import classes_by_client, samples_per_client
from fedsim.viz.sample_sheet import Kind, sample_sheet
from fedsim.viz.save import save_figure
from fedsim.viz.style import RC

COUNTS = np.array([[4, 0, 0], [2, 2, 0], [0, 1, 3], [5, 5, 0]])


def drawn(counts: np.ndarray, **options: object) -> tuple[Figure, Axes, Axes]:
    with mpl.rc_context(RC):
        figure = Figure(figsize=(6.4, 4.6), layout="constrained")
        ax, top = classes_by_client(counts, figure, **options)  # type: ignore[arg-type]
        figure.draw_without_rendering()
    return figure, ax, top


def cells(ax: Axes) -> np.ndarray:
    """(classes, clients) what the picture's cells hold."""
    (image,) = ax.get_images()
    return np.asarray(image.get_array())


def texts(labels: list[mpl.text.Text]) -> list[str]:
    return [label.get_text() for label in labels]


def test_a_cell_is_the_class_share_of_the_client_and_a_bar_its_size() -> None:
    figure, ax, top = drawn(COUNTS, class_names=("dent", "scratch", "$"), title="Who has what")
    assert_array_equal(cells(ax).T, [[1, 0, 0], [0.5, 0.5, 0], [0, 0.25, 0.75], [0.5, 0.5, 0]])
    assert [bar.get_height() for bar in top.patches] == [4, 4, 4, 10]
    assert texts(ax.get_xticklabels()) == ["0", "1", "2", "3"]
    assert texts(ax.get_yticklabels()) == ["dent", "scratch", r"\$"]
    assert figure.get_suptitle() == "Who has what"
    assert (ax.get_xlabel(), ax.get_ylabel(), top.get_ylabel()) == ("client", "class", "samples")
    assert figure.axes[1].get_ylabel() == "share of the client's samples"


def test_clients_stand_in_the_order_of_their_factories() -> None:
    _, ax, top = drawn(COUNTS, factory=np.array([1, 0, 1, 0]), factory_names=("north", "south"))
    assert_array_equal(cells(ax).T, np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [1, 0, 0], [0, 0.25, 0.75]]))
    assert [bar.get_height() for bar in top.patches] == [4, 10, 4, 4]
    assert texts(ax.get_xticklabels()) == ["1", "3", "0", "2"]
    assert ax.get_xlabel() == "client, factory by factory"
    (bound,) = ax.get_lines()
    assert list(np.asarray(bound.get_xdata())) == [1.5, 1.5]
    (above,) = top.child_axes
    assert texts(above.get_xticklabels()) == ["north", "south"]
    assert list(above.get_xticks()) == [0.5, 2.5]


def test_one_factory_has_no_bounds() -> None:
    _, ax, _ = drawn(COUNTS, factory=np.zeros(4, np.int64))
    assert len(ax.get_lines()) == 0
    assert ax.get_xlabel() == "client"


def overlap(labels: list[mpl.text.Text], along: str) -> bool:
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    spans = sorted((box.x0, box.x1) if along == "x" else (box.y0, box.y1) for box in boxes)
    return any(before[1] > after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize(
    ("clients", "classes", "factories"), [(10, 10, 1), (10, 10, 3), (40, 10, 4), (100, 35, 10), (368, 62, 11)]
)
def test_labels_have_room(clients: int, classes: int, factories: int) -> None:
    """On a sheet 9 inches wide no label touches its neighbour, and all is within the figure."""
    counts = np.random.default_rng(1).integers(0, 9, (clients, classes)) + 1
    with mpl.rc_context(RC):
        figure = Figure(figsize=(9, 6), layout="constrained")
        ax, top = classes_by_client(counts, figure, factory=np.arange(clients) * factories // clients)
        figure.draw_without_rendering()
        assert not overlap(ax.get_xticklabels(), "x")
        assert not overlap(ax.get_yticklabels(), "y")
        for above in top.child_axes:
            assert not overlap(above.get_xticklabels(), "x")
        whole, tight = figure.bbox, figure.get_tightbbox().transformed(figure.dpi_scale_trans)
        assert whole.x0 <= tight.x0 < tight.x1 <= whole.x1
        assert whole.y0 <= tight.y0 < tight.y1 <= whole.y1
    assert len(ax.get_lines()) == factories - 1


def test_many_factories_are_counted_where_their_names_have_no_room() -> None:
    _, ax, top = drawn(np.ones((200, 4), np.int64), factory=np.arange(200) // 4)
    assert ax.get_xlabel() == "client (50 factories)"
    assert not top.child_axes
    assert len(ax.get_lines()) == 49


def test_several_tables_can_share_their_scale() -> None:
    for counts in (COUNTS, np.ones((4, 3), np.int64)):
        _, ax, _ = drawn(counts, darkest=1.0)
        assert ax.get_images()[0].get_clim() == (0, 1)
    assert drawn(np.ones((4, 3), np.int64))[1].get_images()[0].get_clim() == (0, 1 / 3)


def test_a_client_without_samples_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="have something in it"):
        drawn(np.array([[0, 0], [1, 1]]))


# --- sizes ---


@tiers.drawn(40)
@given(sizes=st.lists(st.integers(1, 10**6), min_size=1, max_size=80))
def test_every_client_is_in_one_bin(sizes: list[int]) -> None:
    """Bins begin and end between two whole numbers, so that none is on an edge."""
    ax = samples_per_client(np.array(sizes), Figure().add_subplot())
    edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    in_bins = [sum(low < size < high for size in sizes) for low, high in edges]
    assert [bar.get_height() for bar in ax.patches] == in_bins
    assert sum(in_bins) == len(sizes)
    assert ax.get_lines()[0].get_xdata()[0] == np.median(sizes)  # type: ignore[index]


def test_the_axis_of_sizes_says_their_range_and_sum() -> None:
    ax = samples_per_client(np.array([900, 1200, 1500]), Figure().add_subplot())
    assert ax.get_xlabel() == "training samples of a client (900 to 1,500; 3,600 in all)"
    assert ax.get_ylabel() == "clients"
    same = samples_per_client(np.array([7, 7]), Figure().add_subplot())
    assert same.get_xlabel() == "training samples of a client (7; 14 in all)"


# --- samples ---


GREY_LEVELS = Affine(1 / 255)
GREY = np.random.default_rng(1).integers(0, 256, (13, 1, 5, 4)).astype(np.uint8)


def test_clients_of_whom_some_are_shown_keep_their_numbers() -> None:
    ax, _ = classes_by_client(np.ones((3, 2), np.int64), Figure(), one_in=20)
    assert ax.get_xlabel() == "client (1 in 20 shown)"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "20", "40"]


def made(x: np.ndarray, classes: int | None = 3, encoding: Affine | OneHot = GREY_LEVELS) -> FederatedDataset:
    """Samples of classes in turn, half of them with each of two clients; the last one is for tests."""
    ids = np.arange(len(x) - 1)
    return FederatedDataset(
        name="made",
        classes=classes,
        sample_shape=encoding.sample_shape(x.shape[1:]),
        sample_bytes=None,
        client_samples=np.array([len(ids) // 2, len(ids) - len(ids) // 2]),
        stored=x,
        y=np.arange(len(x)) % classes if classes else np.zeros(len(x), np.float32),
        encoding=encoding,
        train_ids=(ids[: len(ids) // 2], ids[len(ids) // 2 :]),
        client_test_ids=(np.empty(0, np.int64),) * 2,
        test_ids=np.array([len(x) - 1]),
    )


def grid(figure: Figure, per_row: int) -> list[list[Axes]]:
    return [figure.axes[begin : begin + per_row] for begin in range(0, len(figure.axes), per_row)]


def test_a_row_has_training_samples_of_its_class() -> None:
    """Three of four training samples of a class: the first, the third (half-way, rounded to even) and the last."""
    data = made(GREY)
    for label, axes in enumerate(grid(sample_sheet(data, per_row=3), 3)):
        shown = [np.asarray(ax.get_images()[0].get_array()) for ax in axes]
        assert_array_equal(shown, data.samples(np.array([label, label + 6, label + 9]))[:, 0])
        assert axes[0].get_ylabel() == f"class {label}"


def test_a_row_has_training_samples_of_its_client() -> None:
    data = made(GREY)
    rows = grid(sample_sheet(data, rows="client", per_row=2), 2)
    shown = [[np.asarray(ax.get_images()[0].get_array()) for ax in axes] for axes in rows]
    assert_array_equal(shown, [data.samples(np.array(ids))[:, 0] for ids in ([0, 5], [6, 11])])
    assert [axes[0].get_ylabel() for axes in rows] == ["client 0", "client 1"]


def test_where_there_are_fewer_samples_cells_stay_empty() -> None:
    rows = grid(sample_sheet(made(GREY), per_row=6), 6)
    assert [[len(ax.get_images()) for ax in axes] for axes in rows] == [[1, 1, 1, 1, 0, 0]] * 3


def test_all_images_of_a_sheet_share_their_scale() -> None:
    limits = {ax.get_images()[0].get_clim() for ax in sample_sheet(made(GREY), per_row=4).axes}
    (low, high) = limits.pop()
    assert not limits
    assert (low, high) == (np.float32(GREY[:12].min() / 255), np.float32(GREY[:12].max() / 255))


def test_three_channels_are_colours() -> None:
    x = np.random.default_rng(1).integers(0, 256, (13, 3, 5, 4)).astype(np.uint8)
    x[0, :, 0, 0], x[3, :, 0, 0] = 0, 255  # both are shown: the scale is from 0 to 1
    (image,) = sample_sheet(made(x), per_row=4).axes[1].get_images()
    assert np.asarray(image.get_array()) == pytest.approx(np.moveaxis(x[3], 0, -1) / 255, abs=1e-6)


def test_fewer_dimensions_are_lines_one_for_each_channel() -> None:
    x = np.random.default_rng(1).integers(-99, 99, (13, 2, 30)).astype(np.int16)
    ax, *_ = sample_sheet(made(x, encoding=Affine(0.5)), per_row=2).axes
    assert_array_equal([np.asarray(line.get_ydata()) for line in ax.get_lines()], 0.5 * x[0])
    flat = sample_sheet(made(x[:, 0]), per_row=2).axes[0]
    assert len(flat.get_lines()) == 1


def test_ids_are_text_that_a_caller_can_decode() -> None:
    x = np.tile(np.array([3, 1, 2], np.uint8), (13, 1))
    data = replace(made(x, encoding=OneHot(3)), class_names=("World", "Sports", "Sci/Tech"))
    for decode, expected in ((None, "3 1 2"), (lambda row: "".join("_c$a"[place] for place in row), r"ac\$")):
        figure = sample_sheet(data, decode=decode)
        assert [ax.texts[0].get_text() for ax in figure.axes] == [expected] * 3
        assert [ax.get_ylabel() for ax in figure.axes] == ["World", "Sports", "Sci/Tech"]


def test_of_many_classes_twelve_are_shown_unless_some_are_chosen() -> None:
    data = made(np.repeat(GREY, 5, axis=0), classes=31)
    figure = sample_sheet(data, per_row=1)
    assert figure.get_suptitle() == "Samples of made: 12 of 31 classes"
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert (len(labels), labels[0], labels[-1]) == (12, "class 0", "class 30")
    few = sample_sheet(data, chosen=[7, 2], per_row=1, title="Two")
    assert [ax.get_ylabel() for ax in few.axes] == ["class 7", "class 2"]
    assert few.get_suptitle() == "Two"


def test_numbers_to_predict_are_shown_by_client_only() -> None:
    data = made(GREY, classes=None)
    assert len(sample_sheet(data, rows="client", per_row=2).axes) == 4
    with pytest.raises(UserError, match="numbers to predict and no classes; show its clients instead"):
        sample_sheet(data)


def test_declared_data_has_no_samples_to_show() -> None:
    data = Declared(samples_per_client=3).load(Clients(2), np.random.default_rng)
    with pytest.raises(UserError, match="declares numbers only; it has no samples to show"):
        sample_sheet(data)


@pytest.mark.parametrize("kind", ["image", "spectrogram", "series", "text"])
def test_equal_data_give_equal_files(tmp_path: Path, kind: Kind) -> None:
    x = GREY[:, 0] if kind == "series" else GREY
    with mpl.rc_context(RC):
        files = [save_figure(sample_sheet(made(x), kind=kind), tmp_path / f"{number}.png") for number in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()
