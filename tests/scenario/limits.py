"""A block that may take only so much time and memory."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

SECONDS = 5.0
MEMORY_BYTES = 500_000_000


class TooSlow(BaseException):
    """Nobody catches it by accident."""


@contextmanager
def limited(seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES) -> Iterator[None]:
    """A block that raises `TooSlow` after so many seconds, and MemoryError for so much more memory than before.

    Memory is address space, which some systems neither tell nor limit; there, only the time counts.
    """
    status = Path("/proc/self/statm")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if status.exists():
        now_bytes = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now_bytes + memory_bytes, hard))
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _ring(number: int, frame: FrameType | None) -> None:
    raise TooSlow
