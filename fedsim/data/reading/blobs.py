"""A file's bytes, unpacked if it is compressed with gzip, and never more of them than asked for.

Left out: other compressions, and archives (see `fedsim.data.reading.archive`).
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

from fedsim.errors import UserError
from fedsim.files import open_file, shown
from fedsim.quick import check_work

__all__ = ["GZIP", "MOST_BYTES", "read_at_most", "read_blob"]

GZIP = b"\x1f\x8b"
"""How files begin that are compressed with gzip."""
MOST_BYTES = 2_000_000_000
CHUNK_BYTES = 1 << 20


def read_blob(path: Path, *, what: str, most_bytes: int = MOST_BYTES, bytes_in_seconds: int = MOST_BYTES) -> bytes:
    """The bytes of the file *path*, which messages call *what* ("a file of labels"); what is gzip is unpacked.

    Raises `UserError`, beginning with the path, unless *path* is a regular file of at most *most_bytes*, unpacked, and
    undamaged where it is compressed; and where an answer is wanted in seconds, of at most *bytes_in_seconds*.
    """

    def check(size: int) -> None:
        check_work(size / 1e6, bytes_in_seconds / 1e6, f"MB ({what})", shown(path))

    with open_file(path, what=what) as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        try:
            content = read_at_most(gzip.GzipFile(fileobj=file).read if packed else file.read, most_bytes, check)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            problem = "is cut short" if isinstance(error, EOFError) else f"is damaged ({error})"
            raise UserError(f"{shown(path)}: {problem}: {what}, compressed with gzip; get it again") from error
    if content is None:
        unpacked = ", unpacked," if packed else ""
        raise UserError(f"{shown(path)}: is too large: {what}{unpacked} is at most {most_bytes / 1e6:g} MB")
    return content


def read_at_most(
    read: Callable[[int], bytes], most_bytes: int, check: Callable[[int], None] = lambda _: None
) -> bytes | None:
    """All that *read* gives, or None when that is more than *most_bytes*; little more is ever read.

    *check* hears how many bytes there are by now, and may end it by what it raises.
    """
    chunks, size = [], 0
    while chunk := read(CHUNK_BYTES):
        size += len(chunk)
        if size > most_bytes:
            return None
        check(size)
        chunks.append(chunk)
    return b"".join(chunks)
