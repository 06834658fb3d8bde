"""Small photographs of ten kinds of things (A. Krizhevsky, *Learning Multiple Layers of Features*, 2009), and of the
same kinds with 4.5 times the images (L. Darlow et al., *CINIC-10 is not ImageNet or CIFAR-10*, 2018).

CIFAR-10 is read from the binary version, or from the same images one by one in folders. Left out: the Python version,
which is made of pickles, and opening a pickle runs what is written in it; which of the images of CINIC-10 are
CIFAR-10's and which ImageNet's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.data.cache import cached
from fedsim.data.encoding import Affine
from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.reading.archive import read_blob, tar_files
from fedsim.data.reading.images import Images, read_images
from fedsim.data.sampled import SampledDataset
from fedsim.data.source import SourcePath, locate
from fedsim.errors import UserError, nearest
from fedsim.files import shown

__all__ = ["CLASSES", "Cifar10", "Cinic10"]

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
"""Also those of CINIC-10."""
COLOURS, SIDE = 3, 32
LABEL_BYTES = 1
PUBLISHED = 60_000
VERSION = 1
RECORD_BYTES = LABEL_BYTES + COLOURS * SIDE * SIDE
MOST_BATCH_BYTES = 1_000_000_000
BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch")
SUFFIX = ".bin"
FOLDER = "cifar-10-batches-bin"
PARTS = ("train", "test")
WHAT = "CIFAR-10 (the binary version, or images in train/<class> and test/<class>)"
VALIDATION, TEST = "valid", "test"
CINIC_PARTS = ("train", VALIDATION, TEST)
CINIC_PUBLISHED = 90_000
"""Images in each of the three parts."""
CINIC = "CINIC-10 (images in train/<class>, valid/<class> and test/<class>)"


Pixels = Literal[8, 16, 32]


class Cifar10(SampledDataset):
    """60,000 colour images of 32 x 32 pixels in 10 classes, from files that you have (the binary version)."""

    origin: ClassVar[str | None] = "https://www.cs.toronto.edu/~kriz/cifar.html"
    name: Literal["cifar10"] = "cifar10"
    path: SourcePath
    """The folder of the binary version, or of images in train/<class> and test/<class>, or an archive (.tar, .tar.gz,
    .tar.xz) of either; beside the scenario, or in the folder FEDSIM_DATA names."""

    pixels: Pixels = 32
    """Pixels per side. With fewer than 32, each is the mean of 2 x 2 pixels, or of 4 x 4, rounded to a whole byte."""

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (3, pixels, pixels) in [0, 1]; on the wire a byte for each number, and the label."""
        path = locate(self.path, what=f"{WHAT} is needed")
        return smaller(cached(self.name, VERSION, [path], {}, lambda: _read(path)), self.pixels)


class Cinic10(SampledDataset):
    """270,000 colour images of 32 x 32 pixels in the 10 classes of CIFAR-10, from files that you have."""

    origin: ClassVar[str | None] = "https://doi.org/10.7488/ds/2448"
    name: Literal["cinic10"] = "cinic10"
    path: SourcePath
    """The folder with train, valid and test, or an archive of it (.tar, .tar.gz, .tar.xz); beside the scenario, or in
    the folder FEDSIM_DATA names."""
    validation: Literal["train", "test", "drop"] = "train"
    """What becomes of the 90,000 images in valid: clients get them too, they are for tests, or they are left out."""

    pixels: Pixels = 32
    """Pixels per side. With fewer than 32, each is the mean of 2 x 2 pixels, or of 4 x 4, rounded to a whole byte."""

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (3, pixels, pixels) in [0, 1]; on the wire a byte for each number, and the label."""
        path = locate(self.path, what=f"{CINIC} is needed")
        whole = cached(self.name, VERSION, [path], {"validation": self.validation}, lambda: self._read(path))
        return smaller(whole, self.pixels)

    def _read(self, path: Path) -> RawDataset:
        left_out = VALIDATION if self.validation == "drop" else ""
        found = read_images(
            path, ("part", "class"), what=CINIC, grey=False, wanted=lambda folders: folders[0] != left_out
        )
        part, kind = found.folders
        needed = tuple(name for name in CINIC_PARTS if name != left_out)
        _only(path, part, needed, each=True)
        test = (part == TEST) | ((part == VALIDATION) & (self.validation == "test"))
        images = _Found(found.x, _labels_of(path, found, kind), test, found.passed_over)
        expected = CINIC_PUBLISHED * len(needed)
        return _raw(images, expected, f"CINIC-10 has {expected} here")


def smaller(images: RawDataset, pixels: int) -> RawDataset:
    """*images* of bytes with so many *pixels* per side, as many of theirs as go into one: their mean, halves up."""
    if pixels == SIDE:
        return images
    assert isinstance(images.x, np.ndarray)
    each = SIDE // pixels
    summed = np.zeros((len(images.x), COLOURS, pixels, pixels), np.uint16)
    for row in range(each):
        for column in range(each):
            summed += images.x[:, :, row::each, column::each]
    x = ((summed + each * each // 2) // (each * each)).astype(np.uint8)
    return replace(images, x=x, sample_bytes=float(LABEL_BYTES + COLOURS * pixels * pixels))


def _read(path: Path) -> RawDataset:
    batches = _batches_in_folder(path) if path.is_dir() else _batches_in_archive(path)
    images = _of_batches(path, batches) if batches else _of_images(path)
    return _raw(images, PUBLISHED, f"CIFAR-10 has {PUBLISHED}")


class _Found(NamedTuple):
    x: NDArray[np.uint8]
    y: NDArray[np.int64]
    test: NDArray[np.bool_]
    passed_over: int
    """Files that are no images."""


def _raw(found: _Found, expected: int, published: str) -> RawDataset:
    """What was *found*; *published* says that *expected* images have been."""
    remarks = []
    if len(found.y) != expected:
        remarks.append(f"{len(found.y)} images, and {published}")
    if found.passed_over:
        remarks.append(f"{found.passed_over} files that are no images were passed over")
    return RawDataset(
        x=found.x,
        y=found.y,
        classes=len(CLASSES),
        class_names=CLASSES,
        sample_bytes=float(RECORD_BYTES),
        encoding=Affine(1 / 255),
        test=found.test,
        remarks=tuple(remarks),
    )


def _batches_in_folder(path: Path) -> dict[str, bytes]:
    """The files of the binary version by name; none when there are none."""
    for folder in (path, path / FOLDER):
        names = [batch for batch in BATCHES if (folder / f"{batch}{SUFFIX}").exists()]
        if names:
            _require_all(path, names)
            files = {batch: folder / f"{batch}{SUFFIX}" for batch in BATCHES}
            what = "a batch of CIFAR-10"
            return {batch: read_blob(file, what=what, most_bytes=MOST_BATCH_BYTES) for batch, file in files.items()}
    for folder in (path, path / "cifar-10-batches-py"):
        for batch in BATCHES:
            if (folder / batch).exists():
                raise _python_version(path, batch)
    return {}


def _batches_in_archive(path: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for parts, read in tar_files(path, what=WHAT):
        name = parts[-1]
        if name in BATCHES:
            raise _python_version(path, name)
        if name.removesuffix(SUFFIX) in BATCHES:
            found[name.removesuffix(SUFFIX)] = read()
        elif not found and len(parts) > 2:
            return {}  # images in folders
    if found:
        _require_all(path, list(found))
    return found


def _require_all(path: Path, names: list[str]) -> None:
    missing = [f"{batch}{SUFFIX}" for batch in BATCHES if batch not in names]
    if missing:
        raise UserError(f"{shown(path)}: {missing[0]} is not there, and the binary version of CIFAR-10 has it")


def _python_version(path: Path, name: str) -> UserError:
    return UserError(
        f"{shown(path)}: {name!r} is of the Python version of CIFAR-10, a pickle; pickles are not opened, for that "
        f"would execute code; get the binary version ({FOLDER}) from the same page of the data set"
    )


def _of_batches(path: Path, contents: Mapping[str, bytes]) -> _Found:
    """Each is a sequence of records: one byte for the label, then all of red, of green and of blue, row by row."""
    records = []
    for name in BATCHES:
        content = contents[name]
        if not content or len(content) % RECORD_BYTES:
            bytes_ = f"{len(content)} bytes, which are not whole records of {RECORD_BYTES}"
            raise UserError(f"{shown(path)}: {name}{SUFFIX} has {bytes_}; it is cut short or another file")
        rows = np.frombuffer(content, np.uint8).reshape(-1, RECORD_BYTES)
        wrong = np.flatnonzero(rows[:, 0] >= len(CLASSES))
        if wrong.size:
            label = f"record {wrong[0]} of {name}{SUFFIX} has label {rows[wrong[0], 0]}"
            raise UserError(f"{shown(path)}: {label}, and labels are from 0 to {len(CLASSES) - 1}")
        records.append(rows)
    together = np.concatenate(records)
    x = np.ascontiguousarray(together[:, LABEL_BYTES:]).reshape(-1, COLOURS, SIDE, SIDE)
    test = np.repeat([name == BATCHES[-1] for name in BATCHES], [len(rows) for rows in records])
    return _Found(x, together[:, 0].astype(np.int64), test, 0)


def _of_images(path: Path) -> _Found:
    found = read_images(path, ("train or test", "class"), what=WHAT, grey=False)
    part, kind = found.folders
    _only(path, part, PARTS, each=True)
    y = _labels_of(path, found, kind)
    return _Found(found.x, y, part == PARTS[1], found.passed_over)


def _labels_of(path: Path, found: Images, kind: NDArray[np.str_]) -> NDArray[np.int64]:
    """(images,) the labels of images of 32 x 32 pixels by *kind*, the folders they are in.

    Raises `UserError` for another size, and for a folder that is none of the ten classes.
    """
    if found.x.shape[2:] != (SIDE, SIDE):
        size = f"{found.x.shape[3]} x {found.x.shape[2]}"
        raise UserError(f"{shown(path)}: images of {size} pixels; those of this data set have {SIDE} x {SIDE}")
    _only(path, kind, CLASSES)
    return np.searchsorted(np.array(CLASSES), kind).astype(np.int64)


def _only(path: Path, folders: NDArray[np.str_], allowed: tuple[str, ...], *, each: bool = False) -> None:
    """Raise `UserError` unless all *folders* have one of the *allowed* names, and, with *each*, none is missing."""
    there = np.unique(folders).tolist()
    for name in there:
        if name not in allowed:
            hand = nearest(name, allowed)
            raise UserError(f"{shown(path)}: the folder {name[:40]!r} is none of {', '.join(allowed)}{hand}")
    for name in allowed:
        if each and name not in there:
            raise UserError(f"{shown(path)}: there are no images in a folder {name!r}; {', '.join(allowed)} are needed")
