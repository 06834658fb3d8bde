"""Files that are never half-written, and files that are no trap to read.

Left out: reading what is not a regular file (pipes, devices), and other encodings of text than UTF-8.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO

from fedsim.errors import UserError, nearest, some

__all__ = [
    "beside",
    "is_inside",
    "no_text",
    "open_file",
    "open_text_file",
    "own_file_opener",
    "read_own_file",
    "read_text_file",
    "scratch_of",
    "seen_from",
    "shown",
    "sweep_scratch",
    "why_no_folder",
    "why_not_own_file",
    "write_atomically",
]

NO_REGULAR_FILES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
COMPRESSED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"(\xb5/\xfd": "zstd"}
"""How compressed files begin."""
_SCRATCH = re.compile(r"\.(?P<name>[^/]+)\.[0-9]+\.tmp")
LONGEST_SHOWN = 200


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
        raise _too_large(path, what, most_bytes)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise no_text(path, error) from error


@contextmanager
def open_text_file(path: Path, *, what: str, most_bytes: int) -> Iterator[TextIO]:
    """The file *path*, open to read its text piece by piece, line ends as they are; else as `read_text_file`."""
    with open_file(path, what=what) as file:
        if os.fstat(file.fileno()).st_size > most_bytes:
            raise _too_large(path, what, most_bytes)
        yield io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def _too_large(path: Path, what: str, most_bytes: int) -> UserError:
    return UserError(f"{shown(path)}: is too large: {what} is at most {most_bytes / 1e6:g} MB")


def no_text(path: Path, error: UnicodeDecodeError, lines: int = 0) -> UserError:
    """What to say of *path*, in which *error* stands; so many *lines* were read before what it was found in."""
    content = error.object
    for beginning, name in COMPRESSED.items():
        if not lines and content.startswith(beginning):
            return UserError(f"{shown(path)}: is compressed ({name}), and text is needed; unpack it")
    line = lines + content.count(b"\n", 0, error.start) + 1
    byte = f"byte 0x{content[error.start]:02x}"
    return UserError(f"{shown(path)}:{line}: is not UTF-8 text ({byte}); save the file as UTF-8")


def _refuse_what_is_no_file(path: Path, what: str) -> None:
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise UserError(f"{shown(path)}: is a folder; the path of {what} is needed{_hand_inside(path, what)}")
    if not stat.S_ISREG(mode):
        kind = NO_REGULAR_FILES.get(stat.S_IFMT(mode), "no regular file")
        raise UserError(f"{shown(path)}: is {kind}, and {what} must be a regular file; save its content in one")


def _hand_inside(folder: Path, what: str) -> str:
    """What may help somebody who gave the *folder* of a file."""
    inside = folder / "scenario.yaml"
    if inside.is_file():
        return f"; did you mean {str(inside)!r}?"
    there = [entry.name for entry in folder.iterdir() if entry.suffix in (".yaml", ".yml")]
    return f" (it has {some(sorted(there))})" if there and what == "a YAML file" else ""


def _unreadable(path: Path, error: OSError | ValueError) -> UserError:
    return UserError(f"{shown(path)}: cannot be read ({getattr(error, 'strerror', None) or error})")


def _hand(path: Path) -> str:
    """What may help somebody whose file is not there."""
    if path.is_symlink():
        return f": the link leads to {str(path.readlink())!r}, which is not there"
    folder = path.parent
    if not folder.is_dir():
        here = "" if folder.is_absolute() else f" in {shown(Path.cwd())}"
        return f", and no folder {shown(folder)!r}{here}"
    return nearest(path.name, (sibling.name for sibling in folder.iterdir()))


def seen_from(folder: Path, path: str) -> str:
    """What may help somebody who gave the *path* of a file as it is seen from where they are, not from *folder*."""
    if os.path.exists(folder / path) or not os.path.isfile(path):
        return ""
    from_there = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
    return f"; a path is relative to the scenario: write {shown(Path(from_there))}"


def beside(document: object, path: str) -> Path:
    """*path* as it is seen from *document*, whose own path is its ``source``, if it has one; absolute.

    Raises `ValueError` when it cannot be looked up.
    """
    try:
        found = Path(getattr(document, "source", "")).parent / path
        return found.parent.resolve() / found.name
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, a null character
        raise ValueError(f"{path!r} cannot be looked up ({error})") from error


def is_inside(path: Path, folder: Path) -> bool:
    """Whether *path* leads to something in *folder*, however deep, and not to the folder itself."""
    return Path(os.path.realpath(folder)) in Path(os.path.realpath(path)).parents


def shown(path: Path) -> str:
    """A path as messages print it: from the working folder if it is in there, on one line, and not longer than that."""
    text = str(path)
    if path.is_absolute():
        with suppress(OSError):  # the working folder is gone
            here = Path.cwd()
            text = str(path.relative_to(here) if here in path.parents else path)
    plain = text if text.isprintable() else repr(text)[1:-1]
    return plain if len(plain) <= LONGEST_SHOWN else f"{plain[: LONGEST_SHOWN - 3]}..."


# -- files that this program has written itself -----------------------------------------------------------------------


def why_not_own_file(path: Path) -> str | None:
    """Why *path* is nothing that `write_atomically` has left, whatever it leads to; None when it is, or is not there.

    Raises `OSError` when that cannot be seen.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    return None if stat.S_ISREG(mode) else NO_REGULAR_FILES.get(stat.S_IFMT(mode), "no regular file")


def own_file_opener(path: str, flags: int) -> int:
    """For `open`: follows no link and waits for no pipe, should the file have become one."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def read_own_file(path: Path) -> bytes | None:
    """The content of a file that this program has written; None when it is not there.

    Raises `UserError`, beginning with the path, for a link, a pipe and whatever else is no regular file, and when it
    cannot be read.
    """
    try:
        if kind := why_not_own_file(path):  # before it is opened: a device may do something when it is
            raise UserError(f"{shown(path)}: is {kind}, and must be a regular file; put the file back in its place")
        with open(path, "rb", opener=own_file_opener) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error


def write_atomically(path: Path, *pieces: bytes | memoryview) -> None:
    """Replace *path* by the *pieces*: readers see the old file or the new one, also after a crash.

    Its folder must be there: one that is removed while somebody works in it is not made again.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with open(scratch, "wb", opener=own_file_opener) as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


def scratch_of(name: str) -> str | None:
    """The name of the file that a file called *name* would have become; None when it is no scratch file.

    >>> scratch_of(".rounds.csv.4711.tmp"), scratch_of("rounds.csv")
    ('rounds.csv', None)
    """
    found = _SCRATCH.fullmatch(name)
    return found and found["name"]


def sweep_scratch(folder: Path, is_own: Callable[[str], object]) -> None:
    """Remove from *folder* what a kill in `write_atomically` has left, of names that *is_own* knows.

    For whoever holds the lock under which such files are written: nobody else may be writing one.
    """
    for entry in list(os.scandir(folder)):
        name = scratch_of(entry.name)
        if name is not None and is_own(name) and entry.is_file(follow_symlinks=False):
            os.unlink(entry.path)


def why_no_folder(folder: Path) -> str | None:
    """Why nothing can be written into *folder*, which need not be there yet; None when it seems that it can."""
    try:
        for part in chain([folder], folder.parents):  # not all at once: a bad name may have thousands
            if part.exists() or part.is_symlink():
                if not part.is_dir():
                    return f"{shown(part)} is not a folder"
                return None if os.access(part, os.W_OK | os.X_OK) else f"{shown(part)} cannot be written to"
    except (OSError, ValueError) as error:  # the latter: a null character
        return f"{shown(folder)} is no name of a folder ({getattr(error, 'strerror', None) or error})"
    return None
