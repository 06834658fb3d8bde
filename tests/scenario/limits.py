"""A block that may take only so much time and memory."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

COMPUTING_S = 5.0
WAITING_S = 120.0
MEMORY_BYTES = 500_000_000
ALARMS = {signal.SIGPROF: (signal.ITIMER_PROF, COMPUTING_S), signal.SIGALRM: (signal.ITIMER_REAL, WAITING_S)}


class TooSlow(BaseException):
    """Nobody catches it by accident."""


@contextmanager
def limited() -> Iterator[None]:
    """A block that raises `TooSlow` after five seconds of computing, and MemoryError for 500 MB more than before.

    Waiting for others on a busy machine is no offence, but waiting for ever is. Memory is address space, which some
    systems neither tell nor limit; there, only the time counts.
    """
    status = Path("/proc/self/statm")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = {number: signal.signal(number, _ring) for number in ALARMS}
    if status.exists():
        now_bytes = int(status.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now_bytes + MEMORY_BYTES, hard))
    for timer, seconds in ALARMS.values():
        signal.setitimer(timer, seconds, 1.0)  # again each second: an exception within a destructor is lost
    try:
        yield
    finally:
        for number, (timer, _) in ALARMS.items():
            signal.setitimer(timer, 0.0)
            signal.signal(number, before[number])
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _ring(number: int, frame: FrameType | None) -> None:
    raise TooSlow
