"""Who trains what in a store that several runs share: one of them trains, the others wait and find it in the store.

What two runs have in common begins with their first trainings: whatever is trained later is made of those. So a run
that has to train claims its *beginning*, which is a function of its graph alone, and keeps the claim until its label (a
protocol on a seed) has ended. The claim is a lock on a file, so it ends with its process, however that ends. A run has
one claim at a time, so runs never wait for each other in a circle.

Left out: what two runs have in common in their first round only, such as clients that are in both cohorts; it is never
stored, so nothing would come of waiting.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from fedsim.errors import UserError
from fedsim.files import read_own_file, shown, why_not_own_file

__all__ = ["Claim", "TrainedElsewhere", "Wait", "just_wait"]

_LONGEST_HOLDER = 200


class TrainedElsewhere(Exception):
    """Another run trains what this one was about to train: it may do something else, and come back to this.

    Its text says which one that is.
    """


Wait = Callable[[str], None]
"""Is called with who has the claim: raises `TrainedElsewhere`, or the claim waits until it is free."""


def just_wait(holder: str) -> None:
    """Nothing is to be done meanwhile."""


class Claim:
    """The one claim of a run. *folder* is where a store keeps the files of claims; *wait* hears that it has to wait."""

    def __init__(self, folder: Path, wait: Wait) -> None:
        self._folder = folder
        self._wait = wait
        self._lock: FileLock | None = None

    def take(self, beginning: str) -> None:
        """Claim the trainings that begin so; may wait for whoever has claimed them.

        Raises `UserError` when the file of the claim has become something else, or its disk has no locks.
        """
        self.release()
        path = self._folder / f"{beginning}.lock"
        if kind := why_not_own_file(path):
            raise UserError(f"{shown(path)}: is {kind}, and a store keeps the lock of a claim there; remove it")
        lock = FileLock(path, fallback_to_soft=False)  # a file that only stands for a lock would outlive its process
        try:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                self._wait(_holder(path))
                lock.acquire()
        except OSError as error:
            problem = f"cannot be locked ({error.strerror}), so runs cannot share this store"
            raise UserError(f"{shown(path)}: {problem}; choose another one with --store") from None
        self._lock = lock
        path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")

    def release(self) -> None:
        """Let others train that; nothing happens when nothing is claimed."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _holder(path: Path) -> str:
    """Who has the claim, as far as that has been written down by now."""
    said = (read_own_file(path) or b"").decode("utf-8", "replace").strip()[:_LONGEST_HOLDER]
    return said if said and said.isprintable() else "another process"
