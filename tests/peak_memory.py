"""How much memory a command takes: counted by the process itself, or with all processes that it starts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["peak_bytes", "peak_bytes_of_all"]

PROGRAM = """
import sys
from pathlib import Path
from fedsim.cli import main
status = main(sys.argv[1:])
high_water = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(high_water.split()[1])
sys.exit(status)
"""
KIB = 1024


def peak_bytes(*words: object) -> int:
    """The most that ``fedsim`` *words* had at one time. Raises `CalledProcessError` where the command fails."""
    call = [sys.executable, "-c", PROGRAM, *map(str, words)]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout.split()[-1]) * KIB


def peak_bytes_of_all(*words: object, every_s: float = 0.05) -> int:
    """The most that ``fedsim`` *words* and its workers were seen to have together; what they share counts once.

    Raises `CalledProcessError` where the command fails.
    """
    call = [sys.executable, "-m", "fedsim", *map(str, words)]
    peak = 0
    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(_proportional_bytes, (process.pid, *_children(process.pid)))))
            time.sleep(every_s)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, call)
    return peak


def _children(process: int) -> list[int]:
    with contextlib.suppress(OSError):  # it has ended
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


def _proportional_bytes(process: int) -> int:
    """What it has alone, and its share in what it has with others."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * KIB
    return 0
