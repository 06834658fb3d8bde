"""Images in the JSON files of LEAF (S. Caldas et al., 2018, https://leaf.cmu.edu): one list of pixels for each sample.

A file is ``{"users": [...], "num_samples": [...], "user_data": {user: {"x": [[...]], "y": [...]}}}``, plain or by gzip.
Left out: data of LEAF that are no images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.blobs import read_blob
from fedsim.data.reading.json_pieces import JsonPieces
from fedsim.data.source import Missing
from fedsim.errors import UserError
from fedsim.files import shown
from fedsim.quick import check_work

__all__ = ["LeafSamples", "leaf_files", "read_leaf"]

WHITE = 255
EXACT = 1e-6
"""How far from a multiple of 1/255 a pixel may be: more than rounding in any way of writing it, less than half a grey
level of 16 bits."""
MOST_BYTES_IN_SECONDS = 150_000_000
"""Of the text of all files."""
PLACES = ("", "data")
SUFFIXES = (".json", ".json.gz")
WHAT = "a JSON file of LEAF"
LAYOUT = (
    "a folder with train and test, each with .json or .json.gz files, or with files that have train or test in names"
)


@dataclass(frozen=True, eq=False)
class LeafSamples:
    """Images by user, as files of LEAF hold them together, in the order of files and users."""

    images: NDArray[np.uint8]
    """(samples, side, side)."""
    label: NDArray[np.int64]
    owner: NDArray[np.int64]
    """(samples,) by the order of ``names``."""
    test: NDArray[np.bool_]
    names: tuple[str, ...]
    """The users."""

    def only(self, kept: NDArray[np.bool_]) -> LeafSamples:
        """Those of (samples,) *kept*."""
        return LeafSamples(self.images[kept], self.label[kept], self.owner[kept], self.test[kept], self.names)


def leaf_files(folder: Path) -> list[tuple[Path, bool]]:
    """(file, whether it is for tests) in *folder*: training first, then by name.

    They lie in ``train`` and ``test``, there or in ``data``, or in *folder* itself with ``train`` or ``test`` in their
    names. Raises `UserError` unless there are some for training or tests.
    """
    try:
        for place in PLACES:
            files = [(file, part == "test") for part in ("train", "test") for file in _json_in(folder / place / part)]
            if files:
                return files
        flat = [(file, "test" in file.name) for file in _json_in(folder)]
    except OSError as error:
        raise UserError(f"{shown(folder)}: cannot be read ({error.strerror})") from error
    if not flat:
        raise Missing(f"{shown(folder)}: has no JSON files of LEAF; it must be {LAYOUT}")
    for file, test in flat:
        if test == ("train" in file.name):
            raise UserError(f"{shown(file)}: is it for training or for tests? The name must have one of the words")
    return sorted(flat, key=lambda entry: (entry[1], entry[0].name))


def _json_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.name.endswith(SUFFIXES) and not file.name.startswith("."))


def read_leaf(folder: Path, files: Sequence[tuple[Path, bool]], side: int) -> LeafSamples:
    """The samples of *files* (see `leaf_files`) of *folder*, images of *side* x *side* pixels.

    Raises `UserError` that names file and user for what is no file of LEAF, pixels that are no multiples of 1/255, and
    labels that are no whole numbers.
    """
    images: list[NDArray[np.uint8]] = []
    labels: list[NDArray[np.int64]] = []
    users: list[str] = []
    tests: list[bool] = []
    read = 0
    for file, test in files:
        text = _text(file)
        read += len(text)
        check_work(read / 1e6, MOST_BYTES_IN_SECONDS / 1e6, "MB of JSON text up to its end", shown(file))
        for user, x, y in _users(file, text, side * side):
            images.append(x)
            labels.append(y)
            users.append(user)
            tests.append(test)
    lengths = [len(y) for y in labels]
    if not sum(lengths):
        raise UserError(f"{shown(folder)}: the JSON files of LEAF have no samples")
    names, owner = np.unique(np.array(users), return_inverse=True)
    return LeafSamples(
        np.concatenate(images).reshape(-1, side, side),
        np.concatenate(labels),
        np.repeat(owner.astype(np.int64), lengths),
        np.repeat(np.array(tests), lengths),
        tuple(names.tolist()),
    )


class _Bad(Exception):
    """What is wrong with a file."""


_NO_LEAF = _Bad('is no file of LEAF: it must have "user_data" once, with "x" and "y" for each user')


def _users(file: Path, text: str, pixels: int) -> Iterator[tuple[str, NDArray[np.uint8], NDArray[np.int64]]]:
    try:
        yield from _by_user(JsonPieces(text), pixels)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{shown(file)}: is no JSON text, or cut short ({str(error)[:100]})") from error
    except _Bad as error:
        raise UserError(f"{shown(file)}: {error}") from error


def _text(file: Path) -> str:
    try:
        return read_blob(file, what=WHAT, bytes_in_seconds=MOST_BYTES_IN_SECONDS).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{shown(file)}: is no JSON text ({str(error)[:100]})") from error


def _by_user(content: JsonPieces, pixels: int) -> Iterator[tuple[str, NDArray[np.uint8], NDArray[np.int64]]]:
    parts = 0
    for part in content.names() if content.begins == "{" else ():
        if part != "user_data":
            content.value()
            continue
        parts += 1
        if content.begins != "{" or parts > 1:
            raise _NO_LEAF
        found = set()
        for user in content.names():
            if not user.isprintable() or not user:
                raise _Bad(f"the user {user[:40]!r} has a name that cannot be printed")
            if user in found:
                raise _Bad(f"the user {user[:40]!r} is there twice")
            found.add(user)
            yield user, *_samples(user, content, pixels)
    if not parts:
        raise _NO_LEAF
    content.end()


def _samples(user: str, content: JsonPieces, pixels: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images: NDArray[np.uint8] | None = None
    labels: NDArray[np.int64] | None = None
    if content.begins == "{":
        for key in content.names():
            if key == "x" and content.begins == "[":
                rows = [_image(user, content.value(), number, pixels) for number, _ in enumerate(content.items())]
                images = np.array(rows, np.uint8).reshape(-1, pixels)
            elif key == "y" and content.begins == "[":
                labels = _labels(user, content.value())
            else:
                content.value()
    if images is None or labels is None:
        raise _Bad(f'the user {user!r} must have two lists, "x" and "y"')
    if len(images) != len(labels):
        raise _Bad(f"the user {user!r} has {len(images)} images and {len(labels)} labels")
    return images, labels


def _image(user: str, values: Any, number: int, pixels: int) -> NDArray[np.uint8]:
    x = _numbers(user, f"x[{number}]", values)
    if x.shape != (pixels,):
        raise _Bad(f"the images of the user {user!r} must each be a list of {pixels} numbers, and x[{number}] is none")
    with np.errstate(invalid="ignore", over="ignore"):  # infinite pixels
        grey = np.rint(x * WHITE)
        wrong = np.flatnonzero(~(np.abs(x * WHITE - grey) <= EXACT * WHITE) | (grey < 0) | (grey > WHITE))
    if wrong.size:
        value = f"x[{number}][{wrong[0]}]={x[wrong[0]]:g}"
        raise _Bad(f"the user {user!r} has {value}, and pixels must be multiples of 1/255 from 0 to 1")
    image: NDArray[np.uint8] = grey.astype(np.uint8)
    return image


def _labels(user: str, values: Any) -> NDArray[np.int64]:
    y = _numbers(user, "y", values)
    if y.size and (y.ndim != 1 or y.dtype.kind != "i"):
        raise _Bad(f"the labels of the user {user!r} must be whole numbers")
    return y.astype(np.int64)


def _numbers(user: str, what: str, values: Any) -> NDArray[Any]:
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        raise _Bad(f"{what} of the user {user!r} has lists of different lengths, or what is no number") from error
    if array.size and array.dtype.kind not in "if":
        raise _Bad(f"{what} of the user {user!r} has what is no number")
    return array
