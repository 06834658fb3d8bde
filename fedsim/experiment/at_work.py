"""Whether a run is at work in a folder: found out without writing, as nobody may be allowed to write there."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from fedsim.files import shown

__all__ = ["LOCK", "why_busy"]

LOCK = ".lock"
"""The file that a run holds a lock on; it stays when the run has ended."""


def why_busy(folder: Path, what: str = "run") -> str | None:
    """That a run, or *what* else it is, is at work in *folder*; None when there is none."""
    return f"another {what} is at work in {shown(folder)}; wait for it" if _is_locked(folder / LOCK) else None


def _is_locked(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe in its place is not waited for
    except (OSError, ValueError):
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)  # and with it the lock, had there been none
    return False
