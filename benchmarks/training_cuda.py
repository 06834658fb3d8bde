"""Training on a CUDA device against the plain loop on one CPU core: seconds per round of model B, evaluation included.

    python -m benchmarks.training_cuda [--batch 5] [--rounds 5] [--serial-rounds 2]

The work is that of `benchmarks.training`, in this process, by fedsim's public path; the first round is a warm-up, then
medians. A round ends with the model's score on the CPU, so nothing is left on its way to the device.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

import fedsim
from benchmarks.peers.work import Record
from benchmarks.training_fedsim import Watch
from benchmarks.training_work import write_scenario, write_work

MODEL = "B"
WAYS = {
    "serial, float32 on cpu": {"executor": "serial"},
    "batched, float32 on cuda": {"executor": "batched", "torch_device": "cuda"},
    "batched, tf32 on cuda": {"executor": "batched", "torch_device": "cuda", "precision": "tf32"},
}


def round_s(folder: Path, batch: int, rounds: int, options: dict[str, str]) -> tuple[float, float]:
    """Seconds of the median round after the first, and the test loss after the last."""
    record = Record()
    scenario = fedsim.load(write_scenario(folder, MODEL, batch, rounds))
    with tempfile.TemporaryDirectory(dir=folder) as out:
        fedsim.run(scenario, out=Path(out) / "run", observer=Watch(record), **options)
    return float(np.median(np.diff(record.ends_s))), record.losses[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5, help="after the warm-up, on the device")
    parser.add_argument("--serial-rounds", type=int, default=2, help="after the warm-up, on the CPU")
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch finds no CUDA device here")
    say = Console(highlight=False, width=120).print
    say(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, model {MODEL}, batch {asked.batch}")
    first: float | None = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_work(folder, 1 + max(asked.rounds, asked.serial_rounds))
        for way, options in WAYS.items():
            rounds = asked.serial_rounds if first is None else asked.rounds
            seconds, loss = round_s(folder, asked.batch, 1 + rounds, options)
            first = first or seconds
            say(f"{way:<26} {seconds:8.3f} s a round, {first / seconds:6.1f} x the first, test loss {loss:.4f}")
    say(f"peak memory on the device: {torch.cuda.max_memory_allocated() / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
