"""Arrays from an ``.npz`` file (a zip of ``.npy`` files, NumPy Enhancement Proposal 1), of which nothing is believed.

NumPy reads them, in memory, with pickles refused, for opening one runs what is written in it. Before that, the shape in
each header is held against the size of its member, against what deflate can make of the packed bytes, and against a
limit: nothing is allocated that cannot be there. Left out: structured arrays, dates,
and compressions other than deflate.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fedsim.errors import Flaw, UserError, in_short, nearest, some
from fedsim.files import open_file, shown
from fedsim.quick import check_bytes, check_samples

__all__ = ["MOST_BYTES", "Wanted", "read_npz", "same_length"]

MOST_BYTES = 8_000_000_000
SUFFIX = ".npy"
MOST_DEFLATED = 1032  # times smaller is what deflate makes of zeros (zlib's technical details), and no more
KINDS = {
    "b": "true or false",
    "u": "whole numbers from 0 on",
    "i": "whole numbers",
    "f": "floating-point numbers",
    "c": "complex numbers",
    "U": "text",
    "S": "bytes",
    "V": "records",
    "M": "dates",
    "m": "spans of time",
}
NO_ZIP = {
    b"\x93NUMPY": "is a single array (.npy); save all arrays in one file with numpy.savez_compressed",
    b"\x80": "looks like a pickle, which is never opened: it would execute code; save arrays with "
    "numpy.savez_compressed",
    b"\x1f\x8b": "is compressed with gzip; unpack it",
}
"""How other files begin, and what to do about them."""


@dataclass(frozen=True)
class Wanted:
    """What an array must be.

    >>> Wanted("iu f4", 1).allows(np.dtype("i8")), Wanted("iu f4", 1).allows(np.dtype("f8"))
    (True, False)
    """

    dtypes: str
    """Kinds of numbers, ``"iu"``, or dtypes, ``"u1 f4"``; words apart are alternatives."""
    ndim: int | None = None
    """Dimensions; None for any."""

    def allows(self, dtype: np.dtype[Any]) -> bool:
        """Whether *dtype* is among ``dtypes``."""
        return any(dtype.kind in word if word.isalpha() else dtype.str[1:] == word for word in self.dtypes.split())

    def __str__(self) -> str:
        words = [kind for word in self.dtypes.split() for kind in (word if word.isalpha() else [word])]
        both = {"i", "u"} <= set(words)  # then the narrower says nothing
        names = [KINDS.get(word) or np.dtype(word).name for word in words if not (both and word == "u")]
        dimensions = "" if self.ndim is None else f", with {self.ndim} dimension{'s' * (self.ndim != 1)}"
        return f"{' or '.join(names)}{dimensions}"


def read_npz(
    path: Path,
    wanted: Mapping[str, Wanted],
    *,
    what: str,
    optional: Mapping[str, Wanted] | None = None,
    most_bytes: int = MOST_BYTES,
) -> dict[str, NDArray[Any]]:
    """The arrays *wanted*, and those of *optional* that are there, of the file *path*, which messages call *what*.

    They are contiguous and in the byte order of this machine; other members are passed over unread. Raises `UserError`
    that begins with the path unless the file is a whole ``.npz``, has all that is wanted, all of that is as `Wanted`
    says, and together at most *most_bytes*.
    """
    with open_file(path, what=what) as file:
        try:
            with _archive(file, what) as archive:
                members = _members(archive)
                names = [*_all_there(wanted, members, what), *(name for name in optional or () if name in members)]
                rules = {**(optional or {}), **wanted}
                size = 0
                for name in names:
                    own = _declared_bytes(archive, members[name], name, rules[name])
                    size += own
                    if size > most_bytes:
                        most = f"all together may have {most_bytes / 1e6:g}"
                        raise Flaw(f"the array {name!r} has {own / 1e6:g} MB, and {most}")
                check_bytes(size, shown(path))
                return {name: _array(archive, members[name], name) for name in names}
        except Flaw as error:
            raise UserError(f"{shown(path)}: {error}") from error


def same_length(path: Path, arrays: Mapping[str, NDArray[Any]], *names: str) -> int:
    """How many rows the arrays called *names* have. Raises `UserError` when they differ, or there are none.

    Names that are not in *arrays* are passed over.
    """
    rows = {name: len(arrays[name]) for name in names if name in arrays}
    (first, number), *others = rows.items()
    for name, other in others:
        if other != number:
            raise UserError(
                f"{shown(path)}: {first} has {number} rows and {name} has {other}; both need one per sample"
            )
    if not number:
        raise UserError(f"{shown(path)}: {first} is empty; at least one sample is needed")
    check_samples(number, shown(path))
    return number


@contextmanager
def _archive(file: BinaryIO, what: str) -> Iterator[zipfile.ZipFile]:
    beginning = file.read(8)
    file.seek(0)
    try:
        archive = zipfile.ZipFile(file)
    except Exception as error:  # whatever `zipfile` does with what is none
        for start, hand in NO_ZIP.items():
            if beginning.startswith(start):
                raise Flaw(hand) from error
        if not beginning:
            raise Flaw(f"is empty, and {what} is needed") from error
        if beginning.startswith(b"PK"):
            raise Flaw(f"is cut short or damaged ({in_short(error)}); get {what} again") from error
        raise Flaw(f"is no .npz file (a zip of NumPy arrays), and {what} is needed") from error
    with archive:
        yield archive


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """By the name of the array."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(SUFFIX)
        if name != info.filename:
            found[name] = info
    return found


def _all_there(wanted: Mapping[str, Wanted], members: Mapping[str, zipfile.ZipInfo], what: str) -> Mapping[str, Wanted]:
    for name in wanted:
        if name not in members:
            there = [member[:40] for member in members]
            inside = f"; there are {some(there, most=10)}" if there else "; there are no arrays at all"
            raise Flaw(f"no array is called {name!r}, which {what} must have{nearest(name, there)}{inside}")
    return wanted


def _declared_bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, rule: Wanted) -> int:
    """What an array will take, by its header, which says no more than can be there."""
    with _telling_damage(name), archive.open(info) as member:
        shape, dtype = _header(member)
        _check(name, rule, shape, dtype)
        size = math.prod(shape) * dtype.itemsize
        packed_at_most = MOST_DEFLATED * (info.compress_size + 1)
        if member.tell() + size != info.file_size or size > packed_at_most:
            raise Flaw(f"the array {name!r} says it has shape {shape}, and has another number of numbers")
    return size


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> NDArray[Any]:
    with _telling_damage(name), archive.open(info) as member:
        found = np.lib.format.read_array(member, allow_pickle=False)
    native: NDArray[Any] = np.asarray(found, found.dtype.newbyteorder("="), order="C")
    return native


@contextmanager
def _telling_damage(name: str) -> Iterator[None]:
    try:
        yield
    except (Flaw, MemoryError):
        raise
    except Exception as error:  # whatever `zipfile` and NumPy do with what is damaged or hostile
        problem = f"is no NumPy array, or is cut short or damaged ({in_short(error)})"
        raise Flaw(f"the array {name!r} {problem}; get the file again") from error


def _header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """(shape, dtype) by the header, whose text NumPy parses without running it."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(member)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # files of Python 2 are read with one
        shape, _, dtype = readers[version](member)
    return shape, dtype


def _check(name: str, rule: Wanted, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if dtype.hasobject:
        raise Flaw(
            f"the array {name!r} holds Python objects, which are never opened: it would execute code; save it as {rule}"
        )
    if not rule.allows(dtype) or not dtype.itemsize:
        raise Flaw(f"the array {name!r} holds {dtype.name} ({KINDS.get(dtype.kind, '?')}), and must hold {rule}")
    if rule.ndim is not None and len(shape) != rule.ndim:
        raise Flaw(f"the array {name!r} has shape {shape}, and must hold {rule}")
