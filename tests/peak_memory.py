"""How much memory a command takes, counted by the process itself: what its parent had at the most does not count."""

from __future__ import annotations

import subprocess
import sys

__all__ = ["peak_bytes"]

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
