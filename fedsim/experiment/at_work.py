"""Whether a run is at work in a folder: found out without writing, as nobody may be allowed to write there."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedsim.scenario.scalars import printable

__all__ = ["LOCK", "here", "why_busy"]

LOCK = ".lock"
"""The file that a run holds a lock on; it stays when the run has ended."""


def here() -> dict[str, Any]:
    """This process, for the manifest of the run that it is at work on."""
    return {"process": os.getpid(), "host": socket.gethostname()}


def why_busy(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    """That a run is at work in *folder*, and which process as far as its *manifest* says; None when there is none."""
    if not _is_locked(folder / LOCK):
        return None
    known = manifest.get("at_work")
    who = f" (process {known['process']} on {known['host']})" if known else ""
    return f"another run is at work in {printable(str(folder))}{who}; wait for it"


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
