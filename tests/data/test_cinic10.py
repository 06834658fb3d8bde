"""CINIC-10: three parts, of which the middle one goes where the settings say."""

from __future__ import annotations

import tarfile

import numpy as np
import pytest
from PIL import Image

from fedsim.data.cifar10 import CLASSES, Cinic10
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError

PER_CLASS = 2


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(1)
    for part in ("train", "valid", "test"):
        for kind in CLASSES:
            place = tmp_path / "CINIC-10" / part / kind
            place.mkdir(parents=True)
            for number in range(PER_CLASS):
                image = rng.integers(0, 256, (32, 32, 3)).astype(np.uint8)
                Image.fromarray(image).save(place / f"n0{number}-{part}.png")
    (tmp_path / "CINIC-10" / "README.md").write_text("not an image", encoding="utf-8")
    return tmp_path / "CINIC-10"


@pytest.fixture
def raw(streams):
    return lambda path, **options: Cinic10(path=str(path), **options).raw(Clients(2), streams(1))


@pytest.mark.parametrize(("validation", "training", "tests"), [("train", 40, 20), ("test", 20, 40), ("drop", 20, 20)])
def test_the_validation_part_goes_where_it_is_wanted(raw, source, validation, training, tests):
    made = raw(source, validation=validation)
    assert np.bincount(made.test).tolist() == [training, tests]
    assert np.bincount(made.y).tolist() == [(training + tests) // 10] * 10
    assert (made.x.shape[1:], made.sample_bytes, made.class_names) == ((3, 32, 32), 3073, CLASSES)
    published = 180_000 if validation == "drop" else 270_000
    sizes = f"{training + tests} images, and CINIC-10 has {published} here"
    assert made.remarks == (sizes, "1 files that are no images were passed over")


def test_each_image_has_the_label_of_its_folder(raw, source):
    made = raw(source)
    for label, kind in enumerate(CLASSES):
        image = np.asarray(Image.open(source / "test" / kind / "n00-test.png")).transpose(2, 0, 1)
        [place] = np.flatnonzero((made.x == image).all(axis=(1, 2, 3)))
        assert (made.y[place], made.test[place]) == (label, True)


def test_an_archive_gives_what_its_folder_gives(raw, source, tmp_path):
    with tarfile.open(tmp_path / "CINIC-10.tar.gz", "w:gz") as archive:
        archive.add(source, "./CINIC-10")
    packed, loose = raw(tmp_path / "CINIC-10.tar.gz"), raw(source)
    assert all(np.array_equal(getattr(packed, name), getattr(loose, name)) for name in ("x", "y", "test"))


def test_a_part_that_is_not_there_is_named(raw, source):
    (source / "valid").rename(source / "validation")
    with pytest.raises(UserError, match="the folder 'validation' is none of train, valid, test; did you mean 'valid'"):
        raw(source)
