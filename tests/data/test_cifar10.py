"""CIFAR-10 from its binary version and from images: the same samples, and never from pickles."""

from __future__ import annotations

import io
import pickle
import tarfile

import numpy as np
import pytest
from PIL import Image

from fedsim.data.cifar10 import BATCHES, CLASSES, Cifar10
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError

PER_BATCH = 10


def batches(seed: int = 1) -> dict[str, np.ndarray]:
    """Records as the data set's page describes them: the label, 1,024 bytes of red, of green and of blue."""
    rng = np.random.default_rng(seed)
    made = {}
    for name in BATCHES:
        records = rng.integers(0, 256, (PER_BATCH, 3073)).astype(np.uint8)
        records[:, 0] = np.arange(PER_BATCH) % 10
        made[f"{name}.bin"] = records
    return made


def write(folder, files) -> None:
    folder.mkdir(exist_ok=True)
    for name, records in files.items():
        (folder / name).write_bytes(records.tobytes())


@pytest.fixture
def raw(streams):
    return lambda path: Cifar10(path=str(path)).raw(Clients(2), streams(1))


def test_records_are_read_byte_by_byte(raw, tmp_path):
    files = batches()
    write(tmp_path / "cifar-10-batches-bin", files)
    made = raw(tmp_path)
    assert (made.x.shape, made.x.dtype, made.classes, made.class_names) == ((60, 3, 32, 32), np.uint8, 10, CLASSES)
    third = files["data_batch_1.bin"][2]
    assert made.y[2] == third[0]
    red, green, blue = third[1:].reshape(3, 32, 32)
    assert np.array_equal(made.x[2], [red, green, blue])
    assert np.array_equal(np.flatnonzero(made.test), np.arange(50, 60))
    assert made.sample_bytes == 3073
    decoded = made.encoding.decode(made.x)
    assert 0 <= decoded.min() < decoded.max() <= 1


@pytest.mark.parametrize("pixels", [8, 16])
def test_fewer_pixels_are_the_means_of_areas(streams, tmp_path, pixels):
    """By hand, in exact arithmetic; halves are rounded up, and the wire has as many bytes."""
    write(tmp_path, batches())
    whole, small = (Cifar10(path=str(tmp_path), pixels=side).raw(Clients(2), streams(1)) for side in (32, pixels))
    each = 32 // pixels
    areas = whole.x.reshape(60, 3, pixels, each, pixels, each).astype(np.int64).sum(axis=(3, 5))
    expected = [
        [[[(2 * some + each**2) // (2 * each**2) for some in row] for row in one] for one in of] for of in areas
    ]
    assert small.x.dtype == np.uint8 and small.x.tolist() == np.array(expected).tolist()
    assert small.sample_bytes == 1 + 3 * pixels**2
    assert np.array_equal(small.y, whole.y) and np.array_equal(small.test, whole.test)


def test_what_is_not_the_whole_data_set_is_said(raw, tmp_path):
    write(tmp_path, batches())
    assert raw(tmp_path).remarks == ("60 images, and CIFAR-10 has 60000",)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_an_archive_gives_what_its_folder_gives(raw, tmp_path, mode):
    write(tmp_path / "cifar-10-batches-bin", batches())
    with tarfile.open(tmp_path / "cifar", mode) as archive:
        archive.add(tmp_path / "cifar-10-batches-bin", "cifar-10-batches-bin")
    assert np.array_equal(raw(tmp_path / "cifar").x, raw(tmp_path).x)


def test_lossless_images_give_what_the_batches_give(raw, tmp_path):
    files = batches()
    write(tmp_path / "bin", files)
    for name, records in files.items():
        for number, record in enumerate(records):
            part = "test" if name == "test_batch.bin" else "train"
            place = tmp_path / "tree" / part / CLASSES[record[0]]
            place.mkdir(parents=True, exist_ok=True)
            image = record[1:].reshape(3, 32, 32).transpose(1, 2, 0)
            Image.fromarray(image).save(place / f"{name}_{number:04}.png")
    binary, images = raw(tmp_path / "bin"), raw(tmp_path / "tree")

    def samples(made):
        return sorted((bytes(x), int(y), bool(test)) for x, y, test in zip(made.x, made.y, made.test, strict=True))

    assert samples(binary) == samples(images)


@pytest.mark.parametrize("packed", [False, True])
def test_the_python_version_is_refused_and_never_opened(raw, tmp_path, packed):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    (tmp_path / "py").mkdir()
    (tmp_path / "py" / "data_batch_1").write_bytes(pickle.dumps(Trap()))
    path = tmp_path / "py"
    if packed:
        path = tmp_path / "py.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(tmp_path / "py", "cifar-10-batches-py")
    with pytest.raises(
        UserError, match="'data_batch_1' is of the Python version.*execute code; get the binary version"
    ):
        raw(path)
    assert not (tmp_path / "sprung").exists()


def test_a_missing_batch_is_named(raw, tmp_path):
    files = batches()
    del files["data_batch_4.bin"]
    write(tmp_path, files)
    with pytest.raises(UserError, match=r"data_batch_4.bin is not there"):
        raw(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda records: records.reshape(-1)[:-1],
            "test_batch.bin has 30729 bytes, which are not whole records of 3073",
        ),
        (lambda records: records[:0], "test_batch.bin has 0 bytes"),
        (lambda records: np.where(np.arange(3073) == 0, 10, records).astype(np.uint8), "record 0 .* has label 10"),
    ],
)
def test_batches_that_are_not_cifars_are_refused(raw, tmp_path, cache_folder, change, message):
    files = batches()
    files["test_batch.bin"] = change(files["test_batch.bin"])
    write(tmp_path, files)
    with pytest.raises(UserError, match=f"^{tmp_path}: {message}"):
        raw(tmp_path)
    assert list(cache_folder.iterdir()) == []


def png(side: int = 32) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (side, side)).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"train/cat/1.png": png(), "test/cat/1.png": png(), "test/bat/1.png": png()},
            "folder 'bat' is none of .*'cat'",
        ),
        ({"train/cat/1.png": png(), "tset/cat/1.png": png()}, "folder 'tset' is none of train, test.*'test'"),
        ({"train/cat/1.png": png()}, "there are no images in a folder 'test'"),
        ({"train/cat/1.png": png(31), "test/cat/1.png": png(31)}, "images of 31 x 31 pixels"),
        ({"train/1.png": png()}, "must lie at <train or test>/<class>/<image>"),
        ({"readme.txt": b""}, "no images in folders <train or test>/<class>/<image>"),
    ],
)
def test_folders_that_are_not_cifars_are_refused(raw, tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message):
        raw(tmp_path)


def test_a_second_look_comes_from_the_cache(raw, tmp_path, monkeypatch, cache_folder):
    write(tmp_path / "bin", batches())
    first = raw(tmp_path / "bin")
    [entry] = cache_folder.iterdir()
    assert entry.name.startswith("cifar10-")
    monkeypatch.setattr("fedsim.data.cifar10._read", lambda path: pytest.fail("read again"))
    again = raw(tmp_path / "bin")
    assert (again.class_names, again.remarks, again.encoding) == (first.class_names, first.remarks, first.encoding)
    assert all(np.array_equal(getattr(again, name), getattr(first, name)) for name in ("x", "y", "test"))


@pytest.mark.data
@pytest.mark.long
def test_the_published_images(data_folder, streams):
    """5,000 for training and 1,000 for tests of each class; the mean colours are those that are published for the
    training images, (0.4914, 0.4822, 0.4465) (e.g. K. Liu, pytorch-cifar), to what JPEG changes."""
    made = Cifar10(path=str(data_folder / "cifar10/cifar10_jpeg_full.tar.xz")).raw(Clients(2), streams(1))
    assert np.bincount(made.y[~made.test]).tolist() == [5000] * 10
    assert np.bincount(made.y[made.test]).tolist() == [1000] * 10
    assert made.remarks == ()
    mean = made.x[~made.test].mean(axis=(0, 2, 3)) / 255
    assert mean == pytest.approx([0.4914, 0.4822, 0.4465], abs=0.002)
