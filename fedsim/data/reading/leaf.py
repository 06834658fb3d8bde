"""Images in the JSON files of LEAF (S. Caldas et al., 2018, https://leaf.cmu.edu): one list of pixels for each sample.

A file is ``{"users": [...], "num_samples": [...], "user_data": {user: {"x": [[...]], "y": [...]}}}``, plain or by gzip.
Left out: data of LEAF that are no images.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.archive import open_pieces
from fedsim.data.reading.json_pieces import JsonPieces
from fedsim.data.source import Missing
from fedsim.errors import Flaw, UserError, in_short
from fedsim.files import shown
from fedsim.quick import check_work

__all__ = ["LeafSamples", "leaf_files", "read_leaf"]

WHITE = 255
EXACT = 1e-6
"""How far from a multiple of 1/255 a pixel may be: more than rounding in any way of writing it, less than half a grey
level of 16 bits."""
MOST_TEXTS = 4096
"""Different ones of numbers that are kept: some for each grey level."""
MOST_USERS_IN_SECONDS = 300_000
MOST_BYTES_IN_SECONDS = 200_000_000
"""Of all files together."""
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
    read = _Read()
    for file, test in files:
        for user, (x, y) in _users(file, side * side, read).items():
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


_Samples = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""(images, pixels) and (images,) labels of a user."""


@dataclass
class _Read:
    """How much text of all files was read."""

    size_bytes: int = 0

    def counted(self, pieces: Iterable[bytes], where: str) -> Iterator[bytes]:
        """The same *pieces*."""
        for piece in pieces:
            self.size_bytes += len(piece)
            check_work(self.size_bytes / 1e6, MOST_BYTES_IN_SECONDS / 1e6, "MB of JSON up to here", where)
            yield piece


def _users(file: Path, pixels: int, read: _Read) -> dict[str, _Samples]:
    """By user; of two that have one name the last one counts, as for `json`."""
    with open_pieces(file, what=WHAT) as pieces:
        text = JsonPieces(read.counted(pieces, shown(file)))
        try:
            users = _of_file(text, pixels, shown(file))
            text.end()
        except Flaw as error:
            raise UserError(f"{shown(file)}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{shown(file)}: is no JSON text, or cut short ({in_short(error)})") from error
    if users is None:
        problem = 'is no file of LEAF: it must have "user_data", with "x" and "y" for each user'
        raise UserError(f"{shown(file)}: {problem}")
    return users


def _of_file(text: JsonPieces, pixels: int, where: str) -> dict[str, _Samples] | None:
    users: dict[str, _Samples] | None = None
    if text.peek() != "{":
        text.value()
        return None
    levels = _Levels()
    for key in text.names():
        if key == "user_data" and text.peek() == "{":
            users = {}
            for user in text.names():
                check_work(len(users), MOST_USERS_IN_SECONDS, "users", where)
                users[user] = _samples(user, text, pixels, levels)
        else:
            text.value()
            users = None if key == "user_data" else users
    return users


class _Levels(dict[str, int]):
    """The grey level that a number in a text means: there are few different ones, and parsing each takes longer.

    Raises `KeyError` for what is no pixel, and for what is not among the first of very many.
    """

    def __missing__(self, text: str) -> int:
        if len(self) >= MOST_TEXTS:
            raise KeyError(text)
        try:
            value = json.loads(text)
            number = float(value) if type(value) in (int, float) else math.nan
        except (ValueError, RecursionError, OverflowError) as error:
            raise KeyError(text) from error
        grey, right = _rounded(np.array([number]))
        if not right.all():
            raise KeyError(text)
        self[text] = level = int(grey[0])
        return level


def _samples(user: str, text: JsonPieces, pixels: int, levels: _Levels) -> _Samples:
    if not user.isprintable() or not user:
        raise Flaw(f"the user {user[:40]!r} has a name that cannot be printed")
    x: NDArray[np.uint8] | None = None
    y: NDArray[np.int64] | None = None
    for key in text.names() if text.peek() == "{" else ():
        if key in ("x", "y") and text.peek() != "[":
            break
        if key == "x":
            x = _images(user, text, pixels, levels)
        elif key == "y":
            y = _labels(user, text.value())
        else:
            text.value()
    else:
        if x is not None and y is not None:
            if len(x) != len(y):
                raise Flaw(f"the user {user!r} has {len(x)} images and {len(y)} labels")
            return x, y
    raise Flaw(f'the user {user!r} must have two lists, "x" and "y"')


def _images(user: str, text: JsonPieces, pixels: int, levels: _Levels) -> NDArray[np.uint8]:
    """(images, pixels) grey levels, which take a hundredth of the memory of the numbers in the text."""
    grey = bytearray()
    for image, _ in enumerate(text.items()):
        row = text.upcoming("]")
        known = _known(row, pixels, levels)
        if known is None:
            grey += _grey_levels(user, image, text.value(), pixels)
        else:
            grey += known
            text.skip(len(row) + 1)
    return np.frombuffer(grey, np.uint8).reshape(-1, pixels)


def _known(row: str, pixels: int, levels: _Levels) -> bytes | None:
    """The *levels* of a *row*, ``[0.2, 1.0``; None when it is no list of so many *pixels* of known levels."""
    if not row.startswith("[") or row.count(",") != pixels - 1:
        return None
    try:
        return bytes(map(levels.__getitem__, row[1:].split(",")))
    except KeyError:
        return None


def _grey_levels(user: str, image: int, row: Any, pixels: int) -> bytes:
    x = _numbers(user, "x", row)
    if x.shape != (pixels,):
        if image and x.ndim == 1:
            raise Flaw(f'"x" of the user {user!r} has rows of different lengths')
        raise Flaw(f"the images of the user {user!r} must each be a list of {pixels} numbers")
    grey, right = _rounded(x)
    if not right.all():
        pixel = int(np.argmin(right))
        value = f"x[{image}][{pixel}]={x[pixel]:g}"
        raise Flaw(f"the user {user!r} has {value}, and pixels must be multiples of 1/255 from 0 to 1")
    return grey.astype(np.uint8).tobytes()


def _rounded(x: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(the nearest grey levels of the pixels *x*, whether they are as near as they must be)."""
    with np.errstate(invalid="ignore", over="ignore"):  # infinite pixels
        exact = x.astype(np.float64) * WHITE
        grey = np.rint(exact)
        return grey, (np.abs(exact - grey) <= EXACT * WHITE) & (grey >= 0) & (grey <= WHITE)


def _labels(user: str, values: Any) -> NDArray[np.int64]:
    y = _numbers(user, "y", values)
    if y.size and (y.ndim != 1 or y.dtype.kind != "i"):
        raise Flaw(f"the labels of the user {user!r} must be whole numbers")
    return y.astype(np.int64)


def _numbers(user: str, key: str, values: Any) -> NDArray[Any]:
    try:
        array = np.array(values)
    except (ValueError, OverflowError) as error:
        raise Flaw(f'"{key}" of the user {user!r} has rows of different lengths, or what is no number') from error
    if array.size and array.dtype.kind not in "if":
        raise Flaw(f'"{key}" of the user {user!r} has what is no number')
    return array
