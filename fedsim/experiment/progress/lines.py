"""Progress on a pipe, or in a file: a line for a round."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from fedsim.experiment.progress.display import Display, OneRun

__all__ = ["LINE_INTERVAL_S", "Lines"]

LINE_INTERVAL_S = 2.0  # at most one line in so many real seconds


class Lines(Display):
    """A line for a round, and not too many of them."""

    _interval_s = LINE_INTERVAL_S

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(now)
        self._stream = stream
        self._written = ""

    def tell(self, text: str) -> None:
        """Write it."""
        self._write(text)

    def _opened(self, run: OneRun, clients: int) -> None:
        self._write(f"{run.name}: begins with {clients} clients")

    def _show(self, run: OneRun) -> None:
        super()._show(run)
        self._write(str(run))

    def _closed(self, run: OneRun) -> None:
        if str(run) != self._written:
            self._show(run)

    def _write(self, line: str) -> None:
        self._written = line
        self._stream.write(line + "\n")
        self._stream.flush()
