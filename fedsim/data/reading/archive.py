"""The files of a ``.tar`` archive (POSIX pax and GNU, plain or by gzip, bzip2 or xz), one by one, in memory.

Nothing is ever extracted, so that no name can lead anywhere; links and devices are refused all the same, for an archive
of data has none. Left out: zip archives, and sparse members.

And a file's own bytes, unpacked if it is compressed with gzip, and never more of them than asked for.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO

from fedsim.errors import Flaw, UserError, in_short
from fedsim.files import open_file, shown
from fedsim.quick import check_work

__all__ = ["GZIP", "MOST_BYTES", "MOST_FILES", "open_pieces", "read_blob", "tar_files"]

GZIP = b"\x1f\x8b"
"""How files begin that are compressed with gzip."""
MOST_FILE_BYTES = 2_000_000_000
CHUNK_BYTES = 1 << 20
MOST_BYTES = 64_000_000_000
"""Of an archive, unpacked."""
MOST_FILES = 4_000_000
"""In an archive or a folder."""
MOST_BYTES_IN_SECONDS = 500_000_000
MOST_FILES_IN_SECONDS = 40_000
MOST_AT_ONCE = 512_000_000
OPENERS: dict[bytes, Callable[[BinaryIO], Any]] = {
    GZIP: gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
"""By the first bytes of a compressed archive."""
LONGEST_BEGINNING = 8
END = bytes(tarfile.BLOCKSIZE)
DAMAGE = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError, OverflowError)
"""What `tarfile` and the unpackers raise for damaged or hostile archives."""
Parts = tuple[str, ...]
"""A path inside an archive or below a folder, in its parts."""


def read_blob(path: Path, *, what: str, most_bytes: int = MOST_FILE_BYTES) -> bytes:
    """The bytes of the file *path*, which messages call *what* ("a file of labels"); what is gzip is unpacked.

    Raises `UserError`, beginning with the path, unless *path* is a regular file of at most *most_bytes*, unpacked, and
    undamaged where it is compressed.
    """
    with open_pieces(path, what=what, most_bytes=most_bytes) as pieces:
        return b"".join(pieces)


@contextmanager
def open_pieces(path: Path, *, what: str, most_bytes: int = MOST_FILE_BYTES) -> Iterator[Iterator[bytes]]:
    """The bytes of `read_blob`, piece by piece; what is wrong with the file may show when its end is read."""
    with open_file(path, what=what) as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        try:
            yield _pieces(path, gzip.GzipFile(fileobj=file).read if packed else file.read, packed, what, most_bytes)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            problem = "is cut short" if isinstance(error, EOFError) else f"is damaged ({error})"
            raise UserError(f"{shown(path)}: {problem}: {what}, compressed with gzip; get it again") from error


def _pieces(path: Path, read: Callable[[int], bytes], packed: bool, what: str, most_bytes: int) -> Iterator[bytes]:
    size = 0
    while piece := read(CHUNK_BYTES):
        size += len(piece)
        if size > most_bytes:
            unpacked = ", unpacked," if packed else ""
            raise UserError(f"{shown(path)}: is too large: {what}{unpacked} is at most {most_bytes / 1e6:g} MB")
        yield piece


def tar_files(path: Path, *, what: str) -> Iterator[tuple[Parts, Callable[[], bytes]]]:
    """(its path, in parts; how to read it) of each file in the archive *path*, which messages call *what*.

    A file can only be read before the next one is asked for. Raises `UserError`, beginning with the path, for what is
    no whole archive, and for links and devices.
    """
    with open_file(path, what=what) as file, _telling(path, what):
        stream = _unpacked(file, what, shown(path))
        for parts, read in _files(_archive(stream, what), shown(path)):
            yield parts, partial(_read, path, what, read)
        if stream.last != END:  # without it, tarfile takes what is damaged for the end
            raise EOFError("there is no end of the archive")
        while stream.read(CHUNK_BYTES):  # to where a checksum is
            pass


@contextmanager
def _telling(path: Path, what: str) -> Iterator[None]:
    """Errors of the archive *path* are told as one message."""
    try:
        yield
    except Flaw as error:
        raise UserError(f"{shown(path)}: {error}") from error
    except DAMAGE as error:
        problem = f"is cut short or damaged ({in_short(error)}); get {what} again"
        raise UserError(f"{shown(path)}: {problem}") from error


def _read(path: Path, what: str, read: Callable[[], bytes]) -> bytes:
    with _telling(path, what):
        return read()


class _Bounded:
    """A stream that is read forward, never much at once, and never without end."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream, self._where = stream, where
        self.tell = stream.tell
        self.last = b""
        """What was read last."""

    def read(self, size: int = -1) -> bytes:
        _check_size(size)
        self._bound(self.tell() + size)
        self.last = self._stream.read(size)
        return self.last

    def seek(self, position: int) -> None:
        self._bound(position)
        self._stream.seek(position)

    def _bound(self, position: int) -> None:
        if position > MOST_BYTES:
            raise Flaw(f"is too large: unpacked, at most {MOST_BYTES / 1e9:g} GB are read")
        check_work(position / 1e6, MOST_BYTES_IN_SECONDS / 1e6, "MB, unpacked", self._where)


def _check_size(size: int) -> None:
    if not 0 <= size <= MOST_AT_ONCE:
        raise Flaw(f"has a part of {size / 1e6:g} MB, and each may have {MOST_AT_ONCE / 1e6:g} MB")


def _unpacked(file: BinaryIO, what: str, where: str) -> _Bounded:
    beginning = file.read(LONGEST_BEGINNING)
    file.seek(0)
    if not beginning:
        raise Flaw(f"is empty, and {what} is needed")
    if beginning.startswith(b"PK"):
        raise Flaw("is a zip archive; unpack it, and give the path of the folder")
    opener = next((opener for start, opener in OPENERS.items() if beginning.startswith(start)), None)
    return _Bounded(opener(file) if opener else file, where)


def _archive(stream: Any, what: str) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=stream, mode="r:")
    except tarfile.ReadError as error:
        raise Flaw(f"is no .tar archive ({in_short(error)}), and {what} is needed") from error


def _files(archive: tarfile.TarFile, where: str) -> Iterator[tuple[Parts, Callable[[], bytes]]]:
    number = 0
    while (member := archive.next()) is not None:
        vars(archive)["members"].clear()  # or it keeps them all
        number += 1
        if number > MOST_FILES:
            raise Flaw(f"holds more than {MOST_FILES} files")
        check_work(number, MOST_FILES_IN_SECONDS, "files to look at for the first time", where)
        name = f"{member.name[:100]!r}"
        parts = tuple(part for part in member.name.split("/") if part not in ("", "."))
        if member.isdir():
            continue
        if not parts or not member.isreg() or member.sparse is not None:
            kind = "a link" if member.islnk() or member.issym() else "no regular file"
            raise Flaw(f"the member {name} is {kind}; pack an archive of regular files only")

        def read(member: tarfile.TarInfo = member) -> bytes:
            _check_size(member.size)
            content = archive.extractfile(member)
            assert content is not None, "a regular file"
            found = content.read(member.size)
            if len(found) != member.size:
                raise EOFError("unexpected end of data")
            return found

        yield parts, read
