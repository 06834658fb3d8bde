"""A process that works on a shared store: the same small protocol again and again, killed at other steps each time.

``python hammer.py FOLDER RUN REPEATS``: every repetition is a run of its own, from another start; other processes do
the same at the same time, so that all write, read and delete the same tensors.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from pathlib import Path

from whole_numbers import Bench, Killed


def outcome(folder: Path, start: int, **options: object) -> list[int]:
    """What the protocol comes to."""
    bench = Bench(folder, **options)
    try:
        return bench.rounds(3, 4, start=start)
    finally:
        bench.store.close()


def hammer(folder: Path, run: str, repeats: int) -> None:
    """Run it, be killed, go on, be killed, finish; with a checkpoint after each chunk."""
    rng = random.Random(run)
    for start in range(repeats):
        alone = outcome(folder.with_name(f"{run}-alone"), start)
        for kill_at in (rng.randint(1, 20), rng.randint(1, 30), float("inf")):
            with suppress(Killed):
                together = outcome(folder, start, run=f"{run}-{start}", checkpoint_every=1, kill_at=kill_at)
        assert together == alone


if __name__ == "__main__":
    hammer(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
