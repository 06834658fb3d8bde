"""Groups that train in sequence against as many clients in parallel, and the memory that HFedMS takes.

    python -m benchmarks.groups [--rounds N] [--blocks N] [--workers N]

368 clients with 50 fresh generated characters each, the HFedMS CNN of 6.69 million parameters, batches of 5, evaluation
in every round. Seconds are those of a round of 99 clients of FedAvg, of 33 groups of 3 (STP), and of a full and a
calibration round of 33 groups of 3 (HFedMS-D with T = 5), by turns, so that a slow minute of the machine meets all;
what counts is the ratio to FedAvg. Memory is the peak of a process of its own that runs HFedMS-D for some blocks, and
of all of its workers; what they share is counted for each.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

import fedsim
from fedsim.experiment.observer import Observer
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round

SCENARIO = Path(__file__).parents[1] / "scenarios/paper/hfedms_table3.yaml"
WARM_UP = 1
"""Rounds (blocks of HFedMS-D) that are not measured."""
T = 5
GROUPS = "growth: {name: constant, beta: 110}"
FEDAVG, STP, HFEDMS = "FedAvg, 99 clients", "STP, 33 groups of 3", "HFedMS-D, 33 groups of 3"
PROTOCOLS = {
    FEDAVG: "{name: fedavg, clients: 99}",
    STP: f"{{name: stp, {GROUPS}}}",
    HFEDMS: f"{{name: hfedms_d, interval: {T}, {GROUPS}}}",
}
CALIBRATION = f"{HFEDMS}, calibration"


class _Laps(Observer):
    """Seconds of each round, from the end of the one before."""

    def __init__(self, told: Callable[[int, float], None]) -> None:
        self._told = told
        self._last = time.perf_counter()

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        now = time.perf_counter()
        self._told(done.number, now - self._last)
        self._last = now


def _run(kind: str, rounds: int, workers: int | None, observer: Observer | None = None) -> int:
    """Bytes of memory at the peak, of this process and of its workers, if that was the first run here."""
    changes = [f"protocols=[{PROTOCOLS[kind]}]", f"stop.rounds={rounds}", "evaluate={every: 1, on: [unseen]}"]
    with tempfile.TemporaryDirectory() as folder:
        scenario = fedsim.load(SCENARIO, overrides=changes)
        manifest = fedsim.run(scenario, out=Path(folder) / "run", workers=workers, observer=observer).manifest
    used = manifest["executor"]["workers"]
    of_workers = used * (manifest["worker_peak_memory_bytes"] or 0) if used > 1 else 0
    return int(manifest["peak_memory_bytes"] + of_workers)


def _seconds(rounds: int, workers: int | None) -> dict[str, list[float]]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for kind in PROTOCOLS:
            block = T if kind == HFEDMS else 1

            def told(number: int, seconds: float, kind: str = kind, block: int = block) -> None:
                if number > WARM_UP * block:
                    found[kind if (number - 1) % block == 0 else CALIBRATION].append(seconds)

            _run(kind, (WARM_UP + 1) * block, workers, _Laps(told))
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="Rounds of each kind that are measured.")
    parser.add_argument("--blocks", type=int, default=20, help="Blocks of HFedMS-D whose memory is measured.")
    parser.add_argument("--workers", type=int, help="Worker processes; left out, one for each core.")
    parser.add_argument("--memory-only", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_only:
        sys.stdout.write(f"{_run(HFEDMS, options.blocks * T, options.workers)}\n")
        return
    found = _seconds(options.rounds, options.workers)
    table = Table("round", "seconds, median", "least", "of FedAvg's")
    for kind, seconds in found.items():
        ratio = statistics.median(seconds) / statistics.median(found[FEDAVG])
        table.add_row(kind, f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f}", f"{ratio:.2f}")
    Console().print(table)
    arguments = [sys.executable, "-m", "benchmarks.groups", "--memory-only", "--blocks", str(options.blocks)]
    arguments += [] if options.workers is None else ["--workers", str(options.workers)]
    peak = int(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()[-1])
    Console().print(f"Memory of {options.blocks} blocks of HFedMS-D: {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
