"""One measurement in a process of its own: seconds of each round, start-up, and the memory of it and its children.

Memory is read from Linux's /proc twice a second; elsewhere it is not known. Left out: what a process needs between
its last look and its end, and that shared pages are counted once in each process.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
LOOK_INTERVAL_S = 0.5
LIMIT_S = 600.0
WARM_UP = 1
"""Rounds that are not measured."""
HIDDEN = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that would decide for everybody how many threads to use."""


class Failed(Exception):
    """Why there is no measurement."""


@dataclass
class Memory:
    """Peaks in bytes: each process's own, and all of them at once."""

    own: dict[int, int] = field(default_factory=dict)
    together: int = 0

    def look(self, root: int) -> None:
        together = 0
        for pid in _tree(root):
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue  # it has ended
            facts = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
            if "VmHWM" in facts:
                self.own[pid] = int(facts["VmHWM"][0]) * 1024
                together += int(facts["VmRSS"][0]) * 1024
        self.together = max(self.together, together)


@dataclass(frozen=True)
class Measured:
    """What one run of one contestant yields. Bytes are None where they cannot be known."""

    seconds: tuple[float, ...]
    """Of each round after the warm-up."""
    start_s: float
    """From the start of the process to the end of the first round, less a median round."""
    own_bytes: int | None
    child_bytes: int | None
    """The largest child's, 0 without children."""
    together_bytes: int | None
    loss: float
    versions: dict[str, str]

    @property
    def round_s(self) -> float:
        """The median round."""
        return float(np.median(self.seconds))

    def joined(self, other: Measured) -> Measured:
        """Both as one: all rounds, the longer start, the larger memory."""
        return Measured(
            self.seconds + other.seconds,
            max(self.start_s, other.start_s),
            _larger(self.own_bytes, other.own_bytes),
            _larger(self.child_bytes, other.child_bytes),
            _larger(self.together_bytes, other.together_bytes),
            other.loss,
            other.versions,
        )


def _larger(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


def execute(command: list[str], folder: Path) -> tuple[int, float, Memory]:
    """Run *command*, which leaves ``record.json`` in *folder*; returns its process id, when it began, and its memory.

    Raises `Failed` with the reason.
    """
    (folder / "record.json").unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    memory, log = Memory(), folder / "log.txt"
    began_s = time.monotonic()
    with log.open("w") as words:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=words, stderr=subprocess.STDOUT)
        ended = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, memory, ended))
        watcher.start()
        try:
            process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {LIMIT_S:.0f} s") from None
        finally:
            if process.poll() is None:
                for pid in reversed(_tree(process.pid)):
                    _kill(pid)
                process.wait()
            ended.set()
            watcher.join()
    if not (folder / "record.json").is_file():
        raise Failed(_last_words(log) or f"ended with code {process.returncode} and no word")
    return process.pid, began_s, memory


def measure(command: list[str], folder: Path) -> Measured:
    """Run *command* and read its record. Raises `Failed` with the reason."""
    root, began_s, memory = execute(command, folder)
    record = json.loads((folder / "record.json").read_text())
    ends_s = np.array(record["ends_s"])
    seconds = np.diff(ends_s)[WARM_UP - 1 :]
    children = [peak for pid, peak in memory.own.items() if pid != root]
    return Measured(
        seconds=tuple(seconds.tolist()),
        start_s=float(ends_s[0] - began_s - np.median(seconds)),
        own_bytes=memory.own.get(root),
        child_bytes=max(children, default=0) if memory.own else None,
        together_bytes=memory.together or None,
        loss=record["losses"][-1],
        versions=record["versions"],
    )


def _last_words(log: Path) -> str | None:
    """The last error in a log, or else its last line with a letter."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return next(reversed(errors or [line for line in lines if re.search(r"[a-z]", line)]), None)


def _watch(root: int, memory: Memory, ended: threading.Event) -> None:
    while not ended.wait(LOOK_INTERVAL_S):
        memory.look(root)


def _tree(root: int) -> list[int]:
    """A process and all that descend from it, parents first; only itself where there is no /proc."""
    children = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        children[parent].append(int(stat.parent.name))
    found = [root]
    for pid in found:
        found += children[pid]
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
