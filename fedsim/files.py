"""Files that are never half-written, and files that are no trap to read.

Left out: reading what is not a regular file (pipes, devices), and other encodings of text than UTF-8.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from fedsim.errors import UserError, nearest

__all__ = ["open_file", "read_text_file", "shown", "why_no_folder", "write_atomically"]

NO_REGULAR_FILES = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"(\xb5/\xfd": "zstd"}
"""How compressed files begin."""
LONGEST_SHOWN = 200
MOST_SIBLINGS = 10_000


@contextmanager
def open_file(path: Path, *, what: str) -> Iterator[BinaryIO]:
    """The file *path*, open to read bytes, which messages call *what* ("a YAML file").

    Looks at what the file is before it is opened, so that it neither waits (for a pipe) nor reads without end (a
    device). Raises `UserError`, beginning with the path, unless *path* is a regular file, or leads to one, and can be
    read to where it is read.
    """
    try:
        _refuse_what_is_no_file(path, what)
        file = path.open("rb")
    except FileNotFoundError as error:
        raise UserError(f"{shown(path)}: there is no such file{_hand(path)}") from error
    except (OSError, ValueError) as error:  # the latter: a null character, half a character
        raise _unreadable(path, error) from error
    with file:
        try:
            yield file
        except OSError as error:
            raise _unreadable(path, error) from error


def read_text_file(path: Path, *, what: str, most_bytes: int = 64_000_000) -> str:
    """The text of the file *path*, which messages call *what* ("a YAML file"); a byte order mark is left out.

    Reads at most *most_bytes* + 1 bytes. Raises `UserError`, beginning with the path, unless `open_file` opens it, and
    it is not larger than *most_bytes*, and in UTF-8.
    """
    with open_file(path, what=what) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UserError(f"{shown(path)}: is too large: {what} is at most {most_bytes / 1e6:g} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_text(path, error) from error


def _refuse_what_is_no_file(path: Path, what: str) -> None:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        inside = path / "scenario.yaml"
        hand = f"; did you mean {str(inside)!r}?" if inside.is_file() else ""
        raise UserError(f"{shown(path)}: is a folder; the path of {what} is needed{hand}")
    if not stat.S_ISREG(mode):
        kind = NO_REGULAR_FILES.get(stat.S_IFMT(mode), "no regular file")
        raise UserError(f"{shown(path)}: is {kind}, and {what} must be a regular file; save its content in one")


def _unreadable(path: Path, error: OSError | ValueError) -> UserError:
    return UserError(f"{shown(path)}: cannot be read ({getattr(error, 'strerror', None) or error})")


def _hand(path: Path) -> str:
    """What may help somebody whose file is not there."""
    if path.is_symlink():
        return f": the link leads to {str(path.readlink())!r}, which is not there"
    folder = path.parent
    if not folder.is_dir():
        return f", and no folder {shown(folder)!r}"
    try:
        return nearest(path.name, [sibling.name for sibling in islice(folder.iterdir(), MOST_SIBLINGS)])
    except OSError:
        return ""


def _no_text(path: Path, error: UnicodeDecodeError) -> UserError:
    content = error.object
    for beginning, name in COMPRESSED.items():
        if content.startswith(beginning):
            return UserError(f"{shown(path)}: is compressed ({name}), and text is needed; unpack it")
    line = content.count(b"\n", 0, error.start) + 1
    byte = f"byte 0x{content[error.start]:02x}"
    return UserError(f"{shown(path)}:{line}: is not UTF-8 text ({byte}); save the file as UTF-8")


def shown(path: Path) -> str:
    """A path as messages print it: on one line, and not longer than that."""
    text = str(path)
    plain = text if text.isprintable() else repr(text)[1:-1]
    return plain if len(plain) <= LONGEST_SHOWN else f"{plain[: LONGEST_SHOWN - 3]}..."


def write_atomically(path: Path, content: bytes) -> None:
    """Replace *path* by *content*: readers see the old file or the new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with scratch.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def why_no_folder(folder: Path) -> str | None:
    """Why nothing can be written into *folder*, which need not be there yet; None when it can.

    Some file systems say only when asked to (``/proc``), so a file is made inside what is there. It has no name
    where the file system can do that, so a process that is killed just then leaves nothing behind.
    """
    try:
        for part in chain([folder], folder.parents):  # not all at once: a bad name may have thousands
            if part.exists() or part.is_symlink():
                if not part.is_dir():
                    return f"{shown(part)} is not a folder"
                return _why_not_writable(part)
    except (OSError, ValueError) as error:  # the latter: a null character
        return f"{shown(folder)} is no name of a folder ({getattr(error, 'strerror', None) or error})"
    return None


def _why_not_writable(folder: Path) -> str | None:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"{shown(folder)} cannot be written to ({error.strerror})"
    return None
