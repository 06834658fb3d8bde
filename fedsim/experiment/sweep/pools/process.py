"""The program of a process in a local pool: runs points that come over a pipe, until nobody gives any."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from fedsim.experiment.sweep.points import PointTask
from fedsim.experiment.sweep.pools.pool import run_point

__all__ = ["main"]

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux's prctl


def main(descriptor: int, parent: int) -> None:
    """Run the points that process *parent* sends over the pipe with this file *descriptor*."""
    _end_with(parent)
    pipe: Connection[Any, Any] = Connection(descriptor)
    try:
        while True:
            task: PointTask = pipe.recv()
            pipe.send(run_point(task, pipe.send))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass


def _end_with(parent: int) -> None:
    """Without its sweep, which may be killed, this process would go on with its point, and keep others from it.

    Where that is not Linux, it goes on until it says how far it is.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
