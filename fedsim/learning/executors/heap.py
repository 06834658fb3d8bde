"""The C library's heap of a worker, told to keep what is freed.

At every step of a training the same few megabytes are freed and asked for again. By default they go back to the kernel
in between, which clears them, page by page.
"""

from __future__ import annotations

import ctypes

__all__ = ["keep_freed_memory"]

# Numbers of <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGE = 2**30


def keep_freed_memory() -> None:
    """Let freed memory stay with this process, where the C library is glibc; elsewhere, or if refused, time is lost."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _LARGE)
        mallopt(_MMAP_THRESHOLD, _LARGE)
