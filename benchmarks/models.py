"""A round of every registered model, by fedsim as it is used and by a tuned PyTorch loop, in one table.

    python -m benchmarks.models [--only NAME ...] [--batches 5,10,64] [--times N] [--precision bfloat16] [--check RATIO]

Eight clients train one epoch of plain SGD from the same numbers on the same mini-batches, and the mean of their models
is scored on 500 samples. fedsim chooses its executor (auto) and takes all cores; the loop has a process of one thread
for each core, and is as fast as its author could make it without training clients together. Both take turns, round by
round, so that a slow minute of the machine meets both; the ratio is the median of those of neighbours. Above 1 fedsim
is faster. Compare rows of one run only. It ends with code 1 if a row could not be measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from benchmarks.models_fedsim import RunFailed, first_model, rounds_in_turn
from benchmarks.models_loop import Loop, LoopFailed
from benchmarks.models_table import Row, table, write
from benchmarks.models_work import MODELS, MOST_TEXTS, Model, TensorDict, Work, chosen
from fedsim.learning.kernels.processor import instruction_set

PRECISIONS = ("float32", "bfloat16")
WARM_UP = 1
"""Rounds of each that are not measured, beside the first one."""
SLOW = 0.97
"""Rows with a smaller ratio are marked."""
WIDTH = 120
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
NOTES = (
    "Seconds are those of a round, medians of {times}. loop / fedsim: the median of the ratios of neighbours, above 1 "
    "fedsim is faster; least and most of them. CPU: the same of the CPU seconds of all processes, all rounds together.",
    "off: how far the model after one round (without dropout) is from that in float32, in per cent of the update in "
    "float32.",
)


def measure(row: Row, loop: Loop, times: int) -> None:
    """Fill in what both sides take, round by round in turn, or say why nothing was measured."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            if row.precision != PRECISIONS[0]:
                row.fedsim_off, row.loop_off = _errors(row, loop, Path(folder))
            loop.begin(row.work, row.precision)
            row.layout = loop.layout
            rounds = 1 + WARM_UP + times
            row.executor, turns = rounds_in_turn(row.work, Path(folder) / "run", row.precision, rounds, loop.another)
            row.turns = turns[1 + WARM_UP :]
    except RunFailed as reason:
        row.reason = f"fedsim: {' '.join(str(reason).split())}"
    except LoopFailed as reason:
        row.reason = f"the loop: {' '.join(str(reason).split())}"


def _errors(row: Row, loop: Loop, folder: Path) -> tuple[float, float]:
    """How far fedsim's model after a round is from its own in float32, and the loop's from the loop's."""
    work = row.work.without_dropout()

    def by_fedsim(precision: str) -> dict[str, TensorDict]:
        return first_model(work, folder / precision, precision)

    def by_loop(precision: str) -> dict[str, TensorDict]:
        loop.begin(work, precision)
        loop.another()
        return loop.model()

    start = work.flat(work.start())

    def error(made_in: Callable[[str], dict[str, TensorDict]]) -> float:
        ours, exact = (work.flat(made_in(precision)) for precision in (row.precision, PRECISIONS[0]))
        return float(np.linalg.norm(ours - exact) / np.linalg.norm(exact - start))

    return error(by_fedsim), error(by_loop)


def run(arguments: argparse.Namespace, console: Console) -> list[Row]:
    """Measure everything, print the table, write the files."""
    words = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    began_s = time.monotonic()
    rows = [Row(work, arguments.precision) for work in _works(arguments.only, arguments.batches)]
    with Loop(CORES) as loop:
        for number, row in enumerate(rows, start=1):
            measure(row, loop, arguments.times)
            found = "{executor}: {fedsim_s:.3f} s, loop {loop_s:.3f} s, ratio {ratio:.2f}"
            words.print(f"[{number}/{len(rows)}] {row.name}: {row.reason or found.format(**row.facts())}")
    about = machine() | {"precision": arguments.precision}
    console.print("{processor} ({instructions}), {cores} cores, torch {torch}, {precision}, {date}".format(**about))
    console.print(table(rows, SLOW))
    for row in rows:
        if row.reason:
            console.print(f"none: {row.name}: {row.reason}", markup=False)
    for note in NOTES if arguments.precision != PRECISIONS[0] else NOTES[:1]:
        console.print(note.format(times=arguments.times), markup=False)
    write(arguments.out, rows, about)
    written = f"models_{arguments.precision}.csv and .json"
    words.print(f"{time.monotonic() - began_s:.0f} s in all. Written: {arguments.out}/{written}")
    return rows


def machine() -> dict[str, Any]:
    """What numbers depend on."""
    return {
        "processor": _processor(),
        "instructions": instruction_set(),
        "cores": CORES,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
    }


def _processor() -> str:
    """What the processor calls itself, as far as the system says."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text("utf-8", "replace").splitlines() if known.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _works(models: list[Model], batches: list[int]) -> list[Work]:
    """Each model with each size once; texts, which are long, in mini-batches of 32 at most."""
    return [
        Work(model, size)
        for model in models
        for size in dict.fromkeys(min(size, MOST_TEXTS) if model.of_texts else size for size in batches)
    ]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        nargs="+",
        action="extend",
        metavar="NAME",
        help=f"these models alone, by label or its first words: {', '.join(model.label for model in MODELS)}",
    )
    parser.add_argument("--batches", type=_sizes, default=[5, 10, 64], metavar="5,10,64", help="sizes of mini-batches")
    parser.add_argument("--times", type=_count, default=5, metavar="N", help="measured rounds of each; left out, 5")
    parser.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0])
    parser.add_argument("--out", type=Path, default=Path("runs/models-benchmark"), help="folder for CSV and JSON")
    parser.add_argument("--check", type=float, metavar="RATIO", help="end with code 1 too if a row's ratio is below it")
    arguments = parser.parse_args(words)
    for name in arguments.only or ():
        if not chosen([name]):
            parser.error(f"--only {name}: there are {', '.join(model.label for model in MODELS)}")
    arguments.only = chosen(arguments.only) if arguments.only else list(MODELS)
    rows = run(arguments, Console(width=WIDTH, highlight=False))
    slower = arguments.check is not None and any(row.is_slower(arguments.check) for row in rows)
    return int(slower or any(row.reason is not None for row in rows))


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1")
    return number


def _sizes(text: str) -> list[int]:
    return list(dict.fromkeys(_count(word) for word in text.split(",")))


if __name__ == "__main__":
    sys.exit(main())
