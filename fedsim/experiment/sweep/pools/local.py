"""Processes of this machine, each of which runs one point after the other.

A process that is killed ends its point, and no other one. When the sweep itself is killed, so are its processes. What
goes over the pipe to a process are plain records that this program has made itself; nobody else can open it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from fedsim.experiment.sweep.points import PointTask
from fedsim.experiment.sweep.pools.pool import Event, Pool

__all__ = ["LocalPool"]

_PROGRAM = "fedsim.experiment.sweep.pools.process"


class _Process:
    """A process, and the point that it runs. It is no fork, as threads of libraries may be at work in this one.

    It finds modules where this one does, and nowhere else (``-P``): not where the command happens to be given.
    """

    def __init__(self) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", _PROGRAM, str(theirs.fileno()), str(os.getpid())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # an interrupt from the terminal is for the sweep, which then ends this process
        )
        theirs.close()
        self.key: str | None = None

    def end(self) -> None:
        """Kill it; a point can always be taken up again."""
        self.process.kill()
        self.process.wait()
        self.pipe.close()


class LocalPool(Pool):
    """*size* processes, which are started when there is something for them to do."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._processes: list[_Process] = []

    def start(self, task: PointTask) -> None:
        """Give the point to a process that has none."""
        process = next((one for one in self._processes if one.key is None), None)
        if process is None:
            process = _Process()
            self._processes.append(process)
        process.key = task.key
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died meanwhile, as `events` will find
            process.pipe.send(task)

    def events(self) -> list[Event]:
        """What the processes say, and which of them have died."""
        busy: dict[Any, _Process] = {process.pipe: process for process in self._processes if process.key is not None}
        found = []
        for pipe in wait(list(busy)):
            assert isinstance(pipe, Connection)
            process = busy[pipe]
            try:
                event: Event = pipe.recv()
            except (EOFError, OSError):  # the latter: it was killed in the middle of a message
                event = self._died(process)
            if event.ends:
                process.key = None
            found.append(event)
        return found

    def close(self) -> None:
        """Kill them."""
        while self._processes:
            self._processes.pop().end()

    def _died(self, process: _Process) -> Event:
        assert process.key is not None
        self._processes.remove(process)
        code = process.process.wait()
        process.pipe.close()
        if code >= 0:
            return Event(process.key, "killed", f"its process has ended by itself (exit status {code})")
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return Event(process.key, "killed", f"its process was ended from outside ({name})")
