"""One peer, one model, one batch size, in this process: ``python -m benchmarks.peers NAME FOLDER MODEL BATCH ROUNDS``.

What was recorded is written into the folder; the peer's own words go to the standard streams.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

from benchmarks.peers.work import Record, Work

DRIVERS = {
    "plain": "plain_loop:as_usual",
    "tuned": "tuned_loop:one_process",
    "tuned-processes": "tuned_loop:process_per_core",
    "pfl": "apple_pfl:run",
    "pfl-processes": "apple_pfl:run",  # started by torchrun
    "fedlab": "fedlab_standalone:run",
    "flower": "flower_simulation:as_usual",
    "flower-resident": "flower_simulation:resident",
}


def main(name: str, folder: str, model: str, batch: str, rounds: str) -> None:
    module, _, function = DRIVERS[name].partition(":")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    record = Record()
    work = Work(Path(folder), model, int(batch), int(rounds), cores)
    getattr(importlib.import_module(f"benchmarks.peers.{module}"), function)(work, record)
    if os.environ.get("RANK", "0") == "0":
        record.save(work.folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
