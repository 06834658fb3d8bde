"""A file's bytes, unpacked if it is compressed with gzip, and never more of them than asked for.

Left out: other compressions, and archives (see `fedsim.data.reading.archive`).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fedsim.errors import UserError
from fedsim.files import open_file, shown

__all__ = ["GZIP", "MOST_BYTES", "open_pieces", "read_blob"]

GZIP = b"\x1f\x8b"
"""How files begin that are compressed with gzip."""
MOST_BYTES = 2_000_000_000
CHUNK_BYTES = 1 << 20


def read_blob(path: Path, *, what: str, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of the file *path*, which messages call *what* ("a file of labels"); what is gzip is unpacked.

    Raises `UserError`, beginning with the path, unless *path* is a regular file of at most *most_bytes*, unpacked, and
    undamaged where it is compressed.
    """
    with open_pieces(path, what=what, most_bytes=most_bytes) as pieces:
        return b"".join(pieces)


@contextmanager
def open_pieces(path: Path, *, what: str, most_bytes: int = MOST_BYTES) -> Iterator[Iterator[bytes]]:
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
