"""The metrics and numbers in a store, for ever: a file of lines for each run, which all runs read.

Damaged lines of the own file are put aside. Those of others are left out only, for they may be being written to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedsim.files import own_file_opener, read_own_file, shown, write_atomically
from fedsim.learning.known_metrics import KnownMetrics, complete_lines
from fedsim.learning.operations.operation import Value
from fedsim.learning.store_folder import StoreFolder
from fedsim.learning.stored_values import Damaged, metrics_line, read_metrics

__all__ = ["LineFile", "StoredMetrics"]


class StoredMetrics:
    """All of a store, and the file of one *run* in it. Made and read while the store's lock is held.

    *tell* hears of damage.
    """

    def __init__(self, place: StoreFolder, run: str, tell: Callable[[str], None]) -> None:
        self._known = KnownMetrics(tell, then="what it held is computed again")
        self._place = place
        self._tell = tell
        self._path = place.path / "metrics" / f"{run}.jsonl"
        self._sizes: dict[Path, int] = {}
        """Of the other runs' files, when they were read."""
        self._put_damaged_lines_aside()
        self._known.read(self._path)
        self.read_of_others()
        self._file: LineFile | None = None

    def open(self) -> None:
        """Get ready for what is to be added."""
        self._file = LineFile(self._path)

    def get(self, name: str) -> Value | None:
        """The value of that name; None when there is none."""
        return self._known.get(name)

    def add(self, name: str, value: Value) -> None:
        """Store metrics, or a number, for ever."""
        assert self._file is not None, "nothing is added before it is opened"
        self._known.add(name, value)
        self._file.append(metrics_line(name, value))

    def read_of_others(self) -> None:
        """Read what other runs have added since their files were last read."""
        for path in self._place.files("metrics"):
            size_bytes = os.lstat(path).st_size
            if path != self._path and self._sizes.get(path) != size_bytes:
                self._known.read(path)
                self._sizes[path] = size_bytes

    def close(self) -> None:
        """Close the own file."""
        if self._file is not None:
            self._file.close()

    def _put_damaged_lines_aside(self) -> None:
        """Those of the own file, which nobody else writes to."""
        damaged: list[bytes] = []
        for number, line in enumerate(complete_lines(self._path), start=1):
            try:
                read_metrics(line)
            except Damaged as damage:
                if not damaged:
                    self._tell(f"{shown(self._path)}:{number}: {damage}; what it held is computed again")
                damaged.append(line)
        if damaged:
            write_atomically(self._place.place_aside(self._path.name), *(line + b"\n" for line in damaged))
            lines = (read_own_file(self._path) or b"").split(b"\n")
            write_atomically(self._path, b"\n".join(line for line in lines if line not in damaged))


_as_text = json.JSONEncoder(separators=(",", ":")).encode


class LineFile:
    """A JSON-lines file; a last line that was cut off by a kill is removed before the first append."""

    def __init__(self, path: Path) -> None:
        content = read_own_file(path) or b""
        whole = content.rfind(b"\n") + 1
        self._file = open(path, "ab", opener=own_file_opener)  # noqa: SIM115 - it stays open
        if whole < len(content):
            self._file.truncate(whole)

    def append(self, *rows: Mapping[str, Any]) -> None:
        """Add a line for each of the *rows*."""
        self._file.write(b"".join(_as_text(row).encode() + b"\n" for row in rows))
        self._file.flush()

    def close(self) -> None:
        """Write no more."""
        self._file.close()
