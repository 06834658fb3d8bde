"""A user's own folders of images: whose they are, what they show, and how they are brought to one size."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError

from fedsim.data.images import ImageFolders
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError


@pytest.fixture
def source(tmp_path):
    """Two lines of a factory with good and bad parts; each image is of one colour, its own."""
    for line, kind, shades in [("line-a", "bad", (1,)), ("line-a", "good", (2, 3)), ("line-b", "good", (4, 5))]:
        (tmp_path / line / kind).mkdir(parents=True)
        for shade in shades:
            Image.new("RGB", (6, 4), (shade, 2 * shade, 3 * shade)).save(tmp_path / line / kind / f"{shade}.png")
    (tmp_path / "line-a" / ".DS_Store").write_bytes(b"")
    (tmp_path / "line-a" / "good" / "notes.txt").write_bytes(b"")
    return tmp_path


@pytest.fixture
def raw(source, streams):
    return lambda path=source, **options: ImageFolders(path=str(path), **options).raw(Clients(2), streams(1))


def test_folders_say_whose_and_what(raw):
    made = raw()
    assert (made.owner_names, made.class_names, made.classes) == (("line-a", "line-b"), ("bad", "good"), 2)
    assert made.owner.tolist() == [0, 0, 0, 1, 1]
    assert made.y.tolist() == [0, 1, 1, 1, 1]
    assert made.x.shape == (5, 3, 4, 6)
    assert made.x[:, :, 0, 0].tolist() == [[shade, 2 * shade, 3 * shade] for shade in (1, 2, 3, 4, 5)]
    assert made.sample_bytes == 3 * 4 * 6 + 1
    assert made.remarks == ("1 files that are no images were passed over",)


def test_grey_is_luma(raw):
    """ITU-R BT.601: 0.299 red + 0.587 green + 0.114 blue."""
    made = raw(grey=True)
    assert made.x.shape == (5, 1, 4, 6)
    expected = [shade * (0.299 + 2 * 0.587 + 3 * 0.114) for shade in (1, 2, 3, 4, 5)]
    assert made.x[:, 0, 0, 0] == pytest.approx(expected, abs=0.5)


def test_grey_images_become_three_equal_colours(raw, source):
    Image.new("L", (6, 4), 77).save(source / "line-a" / "bad" / "grey.png")
    made = raw()
    assert (made.x[made.x[:, 0, 0, 0] == 77] == 77).all()
    assert len(made.x) == 6


def test_different_sizes_need_pixels(raw, source):
    Image.new("RGB", (9, 9), (4, 8, 12)).save(source / "line-b" / "good" / "large.png")
    with pytest.raises(UserError, match=r"'line-a/bad/1.png' has 6 x 4 pixels and .*large.png' has 9 x 9; set pixels"):
        raw()
    made = raw(pixels=5)
    assert made.x.shape == (6, 3, 5, 5)
    assert made.x[-1, :, 2, 2].tolist() == [4, 8, 12]


def test_shrinking_keeps_the_mean(raw, source):
    """A triangle filter that covers the image weighs all of it: black and white columns become mid-grey."""
    stripes = np.tile(np.array([0, 255], np.uint8), (64, 32))
    Image.fromarray(stripes).save(source / "line-b" / "good" / "6.png")
    made = raw(pixels=8, grey=True)
    assert np.abs(made.x[-1].astype(float) - 127.5).max() < 8


def test_classes_without_clients_need_another_partition(raw, source, streams):
    with pytest.raises(ValidationError, match="layout class says nothing of clients"):
        raw(source / "line-a", layout="class")
    made = raw(source / "line-a", layout="class", partition={"name": "iid"})
    assert (made.class_names, made.owner, made.y.tolist()) == (("bad", "good"), None, [0, 1, 1])


def test_each_line_is_a_client(source, streams):
    data = ImageFolders(path=str(source), test_fraction=0.5).load(Clients(2), streams(1))
    assert data.client_samples.tolist() == [1, 1]
    assert sorted(data.y[data.train_ids[1]]) == [1]


@pytest.mark.parametrize("suffix", ["jpg", "bmp", "gif", "ppm", "tif"])
def test_other_formats_are_read(raw, source, suffix):
    Image.new("RGB", (6, 4), (9, 9, 9)).save(source / "line-a" / "bad" / f"x.{suffix}")
    assert np.abs(raw().x[1].astype(int) - 9).max() <= 1


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (Image.new("I;16", (6, 4)), {}, "has more than 8 bits a pixel"),
        (Image.new("RGBA", (6, 4), (1, 2, 3, 128)), {}, "has transparent pixels; save it on a background"),
        (Image.new("RGB", (6, 4)), {"save_all": True, "append_images": [Image.new("RGB", (6, 4), 1)]}, "is animated"),
    ],
)
def test_images_that_would_lose_something_are_refused(raw, source, image, options, message):
    image.save(source / "line-a" / "bad" / "odd.png", **options)
    with pytest.raises(UserError, match=f"^{source}: 'line-a/bad/odd.png': {message}"):
        raw()


def test_opaque_pixels_lose_nothing(raw, source):
    Image.new("RGBA", (6, 4), (1, 2, 3, 255)).save(source / "line-a" / "bad" / "odd.png")
    assert raw().x[1, :, 0, 0].tolist() == [1, 2, 3]


def test_one_class_is_none(raw, source):
    with pytest.raises(UserError, match="all images are of class 'good'; at least 2 are needed"):
        raw(source / "line-b", layout="class", partition={"name": "iid"})


def test_changed_files_are_read_again(raw, source):
    assert len(raw().x) == 5
    (source / "line-b" / "good" / "5.png").unlink()
    assert len(raw().x) == 4
    assert len(raw(grey=True).x) == 4
    (source / "line-a" / "good").rename(source / "line-a" / "great")
    assert "great" in raw().class_names
