"""Handwritten letters and digits by writer (S. Caldas et al., *LEAF*, 2018; from NIST Special Database 19).

Read from LEAF's own JSON files, or from one ``.npz`` file with the same images as bytes. LEAF's sampling gives almost
every writer one image twice, some of them for training and for tests: the second copy is left out. Left out: making
LEAF's files from NIST's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedsim.data.cache import cached
from fedsim.data.encoding import Affine
from fedsim.data.partition.natural import Natural
from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.reading.leaf import LeafSamples, leaf_files, read_leaf
from fedsim.data.reading.npz import Wanted, read_npz, same_length
from fedsim.data.sampled import PartitionField, SampledDataset
from fedsim.data.source import SourcePath, locate
from fedsim.errors import UserError
from fedsim.files import shown

__all__ = ["CHARACTERS", "Femnist"]

CHARACTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""By class."""
SIDE = 28
WHITE = 255
LABEL_BYTES = 1
VERSION = 1
WHAT = "FEMNIST, an .npz file or the folder of LEAF's JSON files"
ARRAYS = {
    "images": Wanted("u1", 3),
    "labels": Wanted("iu", 1),
    "writer": Wanted("iu", 1),
    "split": Wanted("iu b", 1),
    "writer_ids": Wanted("U", 1),
}


class Femnist(SampledDataset):
    """Letters and digits of 28 x 28 pixels in 62 classes, each writer a client (LEAF), from files that you have."""

    origin: ClassVar[str | None] = "the scripts of https://leaf.cmu.edu"
    name: Literal["femnist"] = "femnist"
    path: SourcePath = "femnist/femnist_writers.npz"
    """An .npz file, or the folder of LEAF's JSON files; beside the scenario, or in the folder FEDSIM_DATA names."""
    partition: PartitionField = Natural()
    """How the samples are spread over the clients; natural: each writer is one."""
    duplicates: Literal["drop", "keep"] = "drop"
    """What becomes of an image that its writer has twice, pixel for pixel: the second one is left out, or stays."""
    ink: Literal["dark", "light"] = "dark"
    """What the file has as ink: dark on a light background, as LEAF, or light on a dark one, as MNIST. A model always
    gets ink 1 and background 0."""
    transposed: bool = False
    """Whether the file has rows and columns the other way round, as EMNIST."""

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (1, 28, 28) in [0, 1]; on the wire one byte for each pixel and one for the label."""
        path = locate(self.path, what=f"{WHAT} is needed")
        if path.is_dir():
            files = leaf_files(path)
            folders = list(dict.fromkeys(file.parent for file, _ in files))  # beside them LEAF keeps a million images
            options = self.model_dump(mode="json", include={"duplicates", "ink", "transposed"})
            options["test"] = [test for _, test in files]
            return cached(
                self.name, VERSION, folders, options, lambda: self._raw_of(path, read_leaf(path, files, SIDE))
            )
        return self._raw_of(path, _of_npz(path))

    def _raw_of(self, path: Path, found: LeafSamples) -> RawDataset:
        _check(path, found)
        remarks: list[str] = []
        if self.duplicates == "drop":
            again = _copies(found)
            if again.any():
                found = found.only(~again)
                copies = np.count_nonzero(again)
                remarks.append(f"second copies, pixel for pixel, by the same writer, left out: {copies}")
        split = bool(found.test.any() and not found.test.all())
        if not split:
            only = "tests" if found.test.all() else "training"
            remarks.append(f"the source has samples for {only} only, so that test_fraction says which are for tests")
        x = found.images.transpose(0, 2, 1) if self.transposed else found.images
        _check_ink(path, x, self.ink)
        return RawDataset(
            x=np.ascontiguousarray(x)[:, None],
            y=found.label,
            classes=len(CHARACTERS),
            class_names=tuple(CHARACTERS),
            sample_bytes=float(SIDE**2 + LABEL_BYTES),
            encoding=Affine(-1 / WHITE, 1.0) if self.ink == "dark" else Affine(1 / WHITE),
            owner=found.owner,
            owner_names=found.names,
            test=found.test if split else None,
            remarks=tuple(remarks),
        )


def _of_npz(path: Path) -> LeafSamples:
    arrays = read_npz(path, ARRAYS, what=WHAT)
    same_length(path, arrays, "images", "labels", "writer", "split")
    names = tuple(arrays["writer_ids"].tolist())
    _in_range(path, arrays["writer"], len(names), "writer", "writer_ids has so many names")
    _in_range(path, arrays["split"], 2, "split", "0 is for training and 1 for tests")
    label, writer = arrays["labels"].astype(np.int64), arrays["writer"].astype(np.int64)
    return LeafSamples(arrays["images"], label, writer, arrays["split"] != 0, names)


def _in_range(path: Path, values: NDArray[Any], below: int, name: str, why: str) -> None:
    wrong = np.flatnonzero((values < 0) | (values >= below))
    if wrong.size:
        at = int(wrong[0])
        raise UserError(f"{shown(path)}: {name}[{at}]={values[at]} must be from 0 to {below - 1}: {why}")


def _check(path: Path, found: LeafSamples) -> None:
    if found.images.shape[1:] != (SIDE, SIDE):
        size = " x ".join(map(str, found.images.shape[1:]))
        raise UserError(f"{shown(path)}: images of {size} pixels; those of FEMNIST have {SIDE} x {SIDE}")
    _in_range(path, found.label, len(CHARACTERS), "labels", "10 digits, 26 capital and 26 small letters")


def _copies(found: LeafSamples) -> NDArray[np.bool_]:
    """(samples,) whether the same writer already has this image, pixel for pixel, with this label."""
    again = np.zeros(len(found.label), np.bool_)
    pixels = found.images.reshape(len(again), -1)
    label, writer = found.label.tolist(), found.owner.tolist()
    seen: set[tuple[int, bytes]] = set()
    before = None
    for place in np.argsort(found.owner, kind="stable").tolist():
        if writer[place] != before:
            before = writer[place]
            seen.clear()
        key = (label[place], pixels[place].tobytes())
        again[place] = key in seen
        seen.add(key)
    return again


def _check_ink(path: Path, images: NDArray[np.uint8], ink: str) -> None:
    """Refuse images whose borders, where nobody writes, have the colour of the ink."""
    edges = (images[:, 0], images[:, -1], images[:, :, 0], images[:, :, -1])
    light = sum(np.count_nonzero(edge > WHITE // 2) for edge in edges) / sum(edge.size for edge in edges)
    found = "dark" if light > 0.5 else "light"
    if found != ink:
        raise UserError(
            f"{shown(path)}: {light:.0%} of the pixels at the borders of the images, where nobody writes, are light, "
            f"so the ink is {found}, but ink is {ink!r}; set ink: {found}"
        )
