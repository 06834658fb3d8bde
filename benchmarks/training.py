"""Federated training of many small models: fedsim against plain PyTorch loops, pfl, FedLab and Flower, in one table.

    python -m benchmarks.training [--only NAME] [--models A,B] [--batches 5,10] [--rounds N] [--passes N]

100 clients with 50 samples of 28x28 random pixels each, 30 of them a round, one epoch of SGD, the mean model scored on
1,000 test samples after every round. Model A is conv16-conv32-fc128-fc62 (small_cnn), model B the 6.7 million
parameters of hfedms_cnn. Each row is a process of its own that has the machine to itself; its first round is a warm-up,
then medians. Peers are installed at first use, each into an environment of its own. Compare rows of one run only.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from benchmarks.peers.install import PEERS, NotInstalled, install, interpreter
from benchmarks.peers.work import MODELS, flops_per_round
from benchmarks.training_process import WARM_UP, Failed, execute, measure
from benchmarks.training_table import SAME, Row, reasons, table, write
from benchmarks.training_work import write_work
from fedsim import registry

DEFAULT = "fedsim auto"
REFERENCE = "plain"
ROUNDS = {"A": 10, "B": 5}
FLOWER = ("flower", "flower-resident")
WIDTH = 120
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
NOTES = (
    "Peak: sgemm on {cores} cores, {before:.0f} GFLOP/s before and {after:.0f} after; per cent of the larger. GFLOP a "
    "round: {work}. Medians of so many rounds, after {warm_up}, in {passes}: {rounds}.",
    "x fedsim: seconds per round as a multiple of fedsim's default; more is slower. process, child, all: peak memory "
    "of the process, of its largest child, and of all its processes at once. start: what comes before the first round. "
    "Of several passes these are the largest.",
    "update off: how far the model after the first round is from the plain loop's, in per cent of the plain loop's "
    "update: rounding errors; other work makes more than {same:.0%} (!). The test loss is that after the last round.",
    "plain: as usually written, one process, all cores. tuned: channels last, dense weights updated within the "
    "backward pass, one process with all cores; tuned-processes: one process with one thread per core. flower: as it "
    "comes and as its quickstart trains, from samples in memory; flower-resident: tuned, one actor with one thread for "
    "each core, which keeps the module.",
)


@dataclass(frozen=True)
class Contestant:
    """A row's name, what it runs, and the peer whose environment it needs."""

    name: str
    words: tuple[str, ...]
    peer: str | None = None

    @property
    def is_fedsim(self) -> bool:
        return self.name.startswith("fedsim")

    def command(self, folder: Path, model: str, batch: int, rounds: int) -> list[str]:
        work = [str(folder), model, str(batch), str(rounds)]
        if self.is_fedsim:
            return [sys.executable, "-m", "benchmarks.training_fedsim", *work, *self.words]
        python = [str(interpreter(self.peer)) if self.peer else sys.executable, "-m"]
        return [*python, *self.words, "benchmarks.peers", self.name, *work]


def contestants(executors: list[str]) -> list[Contestant]:
    """fedsim with each executor (a name, then options with commas between them), and everybody else."""
    rows = [Contestant(f"fedsim {text}", tuple(text.split(","))) for text in executors]
    rows += [Contestant(name, ()) for name in (REFERENCE, "tuned", "tuned-processes")]
    torchrun = ("torch.distributed.run", "--standalone", f"--nproc-per-node={CORES}", "-m")
    rows += [Contestant("pfl", (), "pfl"), Contestant("pfl-processes", torchrun, "pfl")]
    return [*rows, Contestant("fedlab", (), "fedlab"), *(Contestant(name, (), "flower") for name in FLOWER)]


def sgemm_gflops() -> float:
    """The fastest product of square float32 matrices, n = 2048 and 4096, on all cores."""
    torch.set_num_threads(CORES)
    fastest = 0.0
    for n in (2048, 4096):
        a, b, out = torch.rand(n, n), torch.rand(n, n), torch.empty(n, n)
        until_s = time.perf_counter() + 3.0
        while (began_s := time.perf_counter()) < until_s:
            torch.mm(a, b, out=out)
            fastest = max(fastest, 2 * n**3 / (time.perf_counter() - began_s) / 1e9)
    return fastest


def compare_models(rows: list[Row], folder: Path, model: str) -> None:
    """Fill in how far each row's model is, after the first round, from the plain loop's."""
    kept = {row.name: np.load(path) for row in rows if (path := _first(folder, row)).is_file()}
    if REFERENCE in kept:
        with np.load(folder / f"start_{model}.npz") as arrays:
            start = np.concatenate([arrays[str(number)].ravel() for number in range(len(arrays.files))])
        update = float(np.linalg.norm(kept[REFERENCE] - start))
        for row in rows:
            if row.name in kept:
                row.off = float(np.linalg.norm(kept[row.name] - kept[REFERENCE])) / update
    for row in rows:
        _first(folder, row).unlink(missing_ok=True)


def _first(folder: Path, row: Row) -> Path:
    return folder / f"first_{row.name.replace('/', '_')}.npy"


def measure_row(contestant: Contestant, folder: Path, row: Row, rounds: int) -> None:
    """Add what was measured, or say why nothing was."""
    if row.reason:
        return
    first = _first(folder, row)
    try:
        if contestant.peer:
            install(contestant.peer)
        (folder / "first.npy").unlink(missing_ok=True)
        if contestant.is_fedsim:
            execute(contestant.command(folder, row.model, row.batch, 1), folder)  # for its model
        measured = measure(contestant.command(folder, row.model, row.batch, rounds + WARM_UP), folder)
        row.measured = row.measured.joined(measured) if row.measured else measured
        (folder / "first.npy").replace(first)
    except NotInstalled as reason:
        row.reason = f"cannot be installed: {reason}"
    except Failed as reason:
        first.unlink(missing_ok=True)
        row.measured, row.reason = None, str(reason)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Measure everything, print the table, write the files."""
    chosen = [one for one in contestants(arguments.executor) if _wanted(one, arguments)]
    if not chosen:
        known = ", ".join(one.name for one in contestants(arguments.executor))
        sys.exit(f"--only {' '.join(arguments.only)} leaves nothing to measure (known: {known})")
    words = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    began_s, rows, done = time.monotonic(), list[Row](), 0
    total = len(arguments.models) * len(arguments.batches) * len(chosen) * arguments.passes
    gflops = {"before": sgemm_gflops()}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_work(folder, max(arguments.rounds or ROUNDS[model] for model in arguments.models) + WARM_UP)
        for model in arguments.models:
            for batch in arguments.batches:
                section = [Row(one.name, model, batch) for one in chosen]
                for _ in range(arguments.passes):
                    for one, row in zip(chosen, section, strict=True):
                        measure_row(one, folder, row, arguments.rounds or ROUNDS[model])
                        done += 1
                        found = f"{row.measured.round_s:.3f} s a round" if row.measured else row.reason
                        words.print(f"[{done}/{total}] {model}, batch {batch}, {one.name}: {found}")
                rows += section
                compare_models(section, folder, model)
    gflops["after"] = sgemm_gflops()
    peak = max(gflops.values())
    machine = {"cores": CORES, "processor": platform.machine(), "python": platform.python_version()}
    machine |= {"torch": torch.__version__}
    console.print(table(rows, peak, DEFAULT))
    for line in reasons(rows):
        console.print(f"none: {line}", markup=False)
    facts = {
        "work": ", ".join(f"{model} {flops_per_round(model) / 1e9:.1f}" for model in arguments.models),
        "rounds": ", ".join(f"{model} {arguments.rounds or ROUNDS[model]}" for model in arguments.models),
        "passes": f"each of {arguments.passes} passes" if arguments.passes > 1 else "one pass",
    }
    for note in NOTES:
        console.print(note.format(cores=CORES, warm_up=WARM_UP, same=SAME, **gflops, **facts), markup=False)
    write(arguments.out, rows, DEFAULT, gflops, machine)
    words.print(f"{time.monotonic() - began_s:.0f} s in all. Written: {arguments.out}/training.csv and training.json")


def _wanted(one: Contestant, arguments: argparse.Namespace) -> bool:
    if arguments.peers == "none" and one.peer:
        return False
    return not arguments.only or any(one.name == name or one.name.split()[0] == name for name in arguments.only)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    executors = ["auto", *registry.names("executors")]
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this row alone; may be repeated")
    parser.add_argument("--models", type=_models, default=list(MODELS), metavar="A,B")
    parser.add_argument("--batches", type=_batches, default=[5, 10], metavar="5,10")
    parser.add_argument(
        "--rounds", type=_rounds, metavar="N", help=f"measured rounds, without the warm-up; left out, {ROUNDS}"
    )
    parser.add_argument(
        "--passes",
        type=_rounds,
        default=1,
        metavar="N",
        help="go through the rows so many times, in turn, and take medians over all: for a machine whose speed changes",
    )
    parser.add_argument("--peers", choices=("all", "none"), default="all", help=f"none: without {', '.join(PEERS)}")
    parser.add_argument(
        "--executor",
        action="append",
        metavar="NAME[,KEY=VALUE...]",
        help=f"one of fedsim's executors, with further arguments of fedsim.run; left out, {', '.join(executors)}",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/training-benchmark"), help="folder for CSV and JSON")
    arguments = parser.parse_args()
    arguments.executor = arguments.executor or executors
    run(arguments, Console(width=WIDTH, highlight=False))


def _models(text: str) -> list[str]:
    if unknown := set(text.split(",")) - set(MODELS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: there are models {', '.join(MODELS)}")
    return text.split(",")


def _rounds(text: str) -> int:
    if (rounds := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least one round has to be measured")
    return rounds


def _batches(text: str) -> list[int]:
    sizes = [int(word) for word in text.split(",")]
    if not all(size > 0 and 50 % size == 0 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text}: a client has 50 samples, so a batch is a divisor of 50")
    return sizes


if __name__ == "__main__":
    main()
