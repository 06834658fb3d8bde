"""What training on a CUDA device costs, and how far its numbers are from those of the CPU in float64: a checklist.

    python -m benchmarks.training_cuda [--only NAME ...] [--batch 5] [--rounds 5] [--torch-device cpu]

* rounds: seconds of a round and the error of the first update, for models A and B of `benchmarks.training`, whose
  clients are trained together, and for a residual network, which the plain loop trains; in each precision.
* waves: a client's share of a wave of 8, 16 and 32 clients, played as a CUDA graph and operation by operation.
* recordings: how many groups are played where sample counts are equal and where they differ.
* plain: a step of the plain loop as it is, and what the choices cost that it makes on a device.

All of it runs in this process. A part that fails says why, and the others go on. ``--torch-device cpu`` tries the
script where there is no device: nothing is recorded there, and its seconds say nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.cuda_parts import plain_loop, recordings, waves
from benchmarks.cuda_rounds import rounds
from benchmarks.cuda_work import Asked

PARTS: dict[str, Callable[[Asked], Iterator[str]]] = {
    "rounds": rounds,
    "waves": waves,
    "recordings": recordings,
    "plain": plain_loop,
}


def checked(part: str, asked: Asked, say: Callable[[str], None]) -> bool:
    """Say what a part of the checklist finds, line by line; whether it came to its end."""
    began = time.monotonic()
    try:
        for line in PARTS[part](asked):
            say(line)
    except Exception as error:
        say(f"{part} failed: {type(error).__name__}: {error}")
        return False
    say(f"{part}: {time.monotonic() - began:.0f} s")
    return True


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some of the parts")
    parser.add_argument("--batch", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5, help="after the warm-up")
    parser.add_argument("--torch-device", choices=("cuda", "cpu"), default="cuda")
    given = parser.parse_args(words)
    on_cuda = given.torch_device == "cuda"
    if on_cuda and not torch.cuda.is_available():
        sys.exit("torch finds no CUDA device here")
    console = Console(highlight=False, markup=False, soft_wrap=True)
    where = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}" if on_cuda else "cpu"
    console.print(f"torch {torch.__version__}, {where}, {os.cpu_count()} cores, batch {given.batch}")
    with tempfile.TemporaryDirectory() as folder:
        asked = Asked(Path(folder), given.torch_device, given.batch, given.rounds)
        ended = [checked(part, asked, console.print) for part in given.only]
    if on_cuda:
        console.print(f"peak memory on the device: {torch.cuda.max_memory_allocated() / 1e9:.2f} GB")
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main())
