"""Recordings of the Bearing Data Center: MATLAB files as they come, or all of them packed in one ``.npz``.

Leaves out the base-plate sensor, faults at the fan end, and what was sampled at 48 kHz.
"""

from __future__ import annotations

import io
import os
import re
import struct
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.npz import Wanted, read_npz, same_length
from fedsim.data.source import Missing, matching
from fedsim.errors import UserError, some
from fedsim.files import open_file, shown
from fedsim.quick import check_bytes

__all__ = ["FAULTS", "FILES", "Recording", "read_mat_files", "read_packed"]

FAULTS = ("normal", "B", "IR", "OR")
MOST_SAMPLES = 10**7  # of one recording: a quarter of an hour
MOST_BYTES = 200_000_000  # of one file
MOST_VARIABLES = 1000  # in one file: the source's have six
HEADER_BYTES = 128
ORDERS = {b"IM": "<", b"MI": ">"}  # of bytes, by the end of the header
TAG_BYTES = 8
COMPRESSED = 15  # the kind in a variable's tag
LONGEST_HEADER = 4096  # bytes of a variable before its numbers
NUMBER_BYTES = 8
CHUNK_BYTES = 1 << 16
SENSORS = {"drive_end": "DE", "fan_end": "FE"}

_GROUPS = (
    ("normal", 0, (97, 98, 99, 100)),
    ("IR", 7, (105, 106, 107, 108)),
    ("B", 7, (118, 119, 120, 121)),
    ("OR", 7, (130, 131, 132, 133)),
    ("OR", 7, (144, 145, 146, 147)),
    ("OR", 7, (156, 158, 159, 160)),
    ("IR", 14, (169, 170, 171, 172)),
    ("B", 14, (185, 186, 187, 188)),
    ("OR", 14, (197, 198, 199, 200)),
    ("IR", 21, (209, 210, 211, 212)),
    ("B", 21, (222, 223, 224, 225)),
    ("OR", 21, (234, 235, 236, 237)),
    ("OR", 21, (246, 247, 248, 249)),
    ("OR", 21, (258, 259, 260, 261)),
    ("IR", 28, (3001, 3002, 3003, 3004)),
    ("B", 28, (3005, 3006, 3007, 3008)),
)
FILES = {
    number: (fault, size_mil, load_hp) for fault, size_mil, numbers in _GROUPS for load_hp, number in enumerate(numbers)
}
"""By the number of a file: fault, its size in thousandths of an inch, and the motor's load in horsepower. These are the
normal recordings and those of drive-end faults at 12 kHz."""

ARRAYS = {
    "mat_file": Wanted("U", 1),
    "fault": Wanted("U", 1),
    "size_mil": Wanted("iu", 1),
    "load_hp": Wanted("iu", 1),
}


@dataclass(frozen=True, eq=False)
class Recording:
    """One of them."""

    name: str
    fault: str
    """One of `FAULTS`: no fault, or one of the ball, the inner or the outer race."""
    size_mil: int
    """Diameter of the fault, thousandths of an inch; 0 without one."""
    load_hp: int
    """Of the motor, horsepower."""
    signal: NDArray[np.float32]
    """(samples,) acceleration in g; empty when there was no such sensor."""


def read_packed(path: Path, sensor: str) -> list[Recording]:
    """The recordings of *sensor* in an ``.npz`` file with whole numbers and, for each recording, their scale in g.

    Raises `UserError` with path, array, value and rule when it is no such file.
    """
    key = SENSORS[sensor].lower()
    wanted = {key: Wanted("i2", 1), f"{key}_off": Wanted("iu", 1), f"{key}_scale": Wanted("f", 1)}
    arrays = read_npz(path, {**ARRAYS, **wanted}, what="the recordings of the Bearing Data Center")
    number = same_length(path, arrays, *ARRAYS, f"{key}_scale")
    values, offset, scale = arrays[key], arrays[f"{key}_off"].astype(np.int64), arrays[f"{key}_scale"]
    if len(offset) != number + 1 or offset[0] != 0 or offset[-1] != len(values) or (np.diff(offset) < 0).any():
        raise UserError(
            f"{shown(path)}: {key}_off must rise from 0 to {len(values)}, the numbers in {key}, in {number} steps: one "
            "for each recording"
        )
    check_bytes(np.float32().nbytes * len(values), shown(path))
    found = []
    for place in range(number):
        name, fault = str(arrays["mat_file"][place]), str(arrays["fault"][place])
        size_mil, load_hp = int(arrays["size_mil"][place]), int(arrays["load_hp"][place])
        record = values[offset[place] : offset[place + 1]]
        if fault not in FAULTS:
            problem = f"recording {place} ({name[:40]!r}) has fault {fault[:20]!r}"
            raise UserError(f"{shown(path)}: {problem}; faults are {', '.join(FAULTS)}")
        if record.size and not 0 < scale[place] <= 1:
            raise UserError(f"{shown(path)}: {key}_scale[{place}]={scale[place]} must be above 0, at most 1 (g)")
        signal = (record * (scale[place] if record.size else 1.0)).astype(np.float32)
        found.append(Recording(name, fault, size_mil, load_hp, signal))
    return found


def read_mat_files(folder: Path, sensor: str) -> tuple[list[Recording], int]:
    """(recordings of *sensor* in the MATLAB files of *folder* by number, how many others there are).

    A file's number is what its name ends with: ``105.mat``, ``12k_Drive_End_IR007_0_105.mat``. Raises `UserError` when
    there are none, or one of them is damaged or has no such signal.
    """
    files: dict[int, Path] = {}
    others = 0
    for file in matching(folder, "*.mat"):
        match = re.search(r"(\d{1,9})$", file.stem)
        number = int(match[1]) if match else -1
        if number in files:
            raise UserError(f"{shown(folder)}: {files[number].name} and {file.name} have one number; keep one")
        if number in FILES:
            files[number] = file
        else:
            others += 1
    if not files:
        raise Missing(
            f"{shown(folder)}: has no recording of a drive-end fault at 12 kHz ({others} other .mat files); names must "
            "end with the number of the source, as 105.mat does"
        )
    recordings = []
    size = 0
    for number, file in sorted(files.items()):
        signal = _signal(file, number, SENSORS[sensor])
        size += signal.nbytes
        check_bytes(size, shown(folder))
        recordings.append(Recording(file.stem, *FILES[number], signal=signal))
    return recordings, others


def _signal(path: Path, number: int, sensor: str) -> NDArray[np.float32]:
    """(samples,) of one MATLAB file; empty when the file has none of this *sensor*."""
    with open_file(path, what="a MATLAB file") as file:
        header = file.read(HEADER_BYTES)
        if not header.startswith(b"MATLAB 5.0") or header[-2:] not in ORDERS:
            raise UserError(f"{shown(path)}: is no MATLAB file of version 5 (before 7.3); get it again, or save it so")
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{shown(path)}: is too large: a recording is at most {MOST_BYTES / 1e6:g} MB")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                there = _variables(file, header)
                name = _variable(path, number, sensor, list(there))
                if name is None:
                    return np.empty(0, np.float32)
                found = _found(file, header, there[name], _size(path, name, there[name]))
        except (UserError, MemoryError):
            raise
        except Exception as error:  # whatever scipy does with what is no such file
            problem = " ".join(f"{type(error).__name__}: {error}".split())[:100]
            raise UserError(f"{shown(path)}: is cut short or damaged ({problem}); get it again") from error
    signal = np.asarray(found).reshape(-1)
    if signal.dtype.newbyteorder("=") != np.float64 or not (np.abs(signal) <= 1e6).all():
        raise UserError(f"{shown(path)}: {name} must hold numbers, at most 1e6 (g); get the file again")
    return signal.astype(np.float32)


@dataclass(frozen=True)
class _There:
    """A variable in a file."""

    begin: int
    """Where its tag stands."""
    bytes: int
    """That follow the tag."""
    packed: bool
    shape: tuple[int, ...]
    kind: str


def _variables(file: BinaryIO, header: bytes) -> dict[str, _There]:
    """By name. Of each, only so much is unpacked as says its name and shape: the rest may be of any size."""
    import scipy.io

    end = file.seek(0, os.SEEK_END)
    found: dict[str, _There] = {}
    begin, number = HEADER_BYTES, 0
    while begin < end:
        number += 1
        if number > MOST_VARIABLES:
            raise ValueError(f"more than {MOST_VARIABLES} variables")
        file.seek(begin)
        kind, size = struct.unpack(f"{ORDERS[header[-2:]]}II", file.read(TAG_BYTES))
        if begin + TAG_BYTES + size > end:
            raise ValueError(f"a variable of {size} bytes, which are not there")
        packed = kind == COMPRESSED
        content = _content(file, begin, size, packed, LONGEST_HEADER)
        _check_parts(content, header, parts=3)
        for name, shape, what in scipy.io.whosmat(io.BytesIO(header + content)):
            found.setdefault(name, _There(begin, size, packed, shape, what))
        begin += TAG_BYTES + size
    return found


def _content(file: BinaryIO, begin: int, size: int, packed: bool, most_bytes: int) -> bytes:
    """At most *most_bytes* of a variable and its tag, unpacked."""
    file.seek(begin)
    if not packed:
        return file.read(min(TAG_BYTES + size, most_bytes))
    file.seek(TAG_BYTES, os.SEEK_CUR)
    unpacker = zlib.decompressobj()
    pieces: list[bytes] = []
    left, wanted = size, most_bytes
    while wanted and left and not unpacker.eof:
        packed_piece = file.read(min(CHUNK_BYTES, left))
        left -= len(packed_piece)
        pieces.append(unpacker.decompress(packed_piece, wanted))
        wanted -= len(pieces[-1])
    return b"".join(pieces)


def _check_parts(content: bytes, header: bytes, parts: int) -> None:
    """The first *parts* of a variable (flags, shape, name, numbers) are there: scipy makes room for what they say."""
    at = TAG_BYTES
    for _ in range(parts):
        kind, size = struct.unpack_from(f"{ORDERS[header[-2:]]}II", content, at)
        short = kind > 0xFFFF  # then kind and size share four bytes, and the part ends with the tag
        end = at + TAG_BYTES + (0 if short else size)
        at = end + -end % TAG_BYTES
        if end > len(content):
            raise ValueError(f"a part of {size} bytes, which are not there")


def _found(file: BinaryIO, header: bytes, there: _There, size: int) -> Any:
    """The *size* numbers of the variable that is *there*; what it holds beside them is never unpacked."""
    import scipy.io

    most_bytes = LONGEST_HEADER + NUMBER_BYTES * size
    content = _content(file, there.begin, there.bytes, there.packed, most_bytes)
    _check_parts(content, header, parts=4)
    (found,) = (
        values for name, values in scipy.io.loadmat(io.BytesIO(header + content)).items() if not name.startswith("__")
    )
    return found


def _variable(path: Path, number: int, sensor: str, there: list[str]) -> str | None:
    """The name of the signal; a file may also hold another one's (99.mat has X098_DE_time and X099_DE_time)."""
    shortened = [name[:40] for name in there]
    names = [name for name in there if re.fullmatch(rf"X\d{{1,9}}_{sensor}_time", name)]
    own = f"X{number:03d}_{sensor}_time"
    if own in names:
        return own
    if len(names) > 1:
        raise UserError(f"{shown(path)}: has {some(names)}, and none of them is {own!r}; rename the file by its number")
    if not names and not any(name.endswith("_time") for name in there):
        raise UserError(f"{shown(path)}: has no signal {own!r}; its variables are {some(shortened, most=6) or 'none'}")
    return names[0] if names else None


def _size(path: Path, name: str, there: _There) -> int:
    """How many numbers a signal has."""
    size = int(np.prod([float(side) for side in there.shape]))
    if there.kind != "double" or max(there.shape, default=0) != size or not 1 <= size <= MOST_SAMPLES:
        raise UserError(
            f"{shown(path)}: {name} is {there.kind} of shape {there.shape}, and one column of at most {MOST_SAMPLES} "
            "numbers (double) is needed"
        )
    return size
