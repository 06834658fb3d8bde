"""What the simulator itself costs while models are trained: clock, graph, keys, trace and store beside the arithmetic.

    python -m benchmarks.overhead [--models A,B] [--batches 5,10] [--rounds N] [--functions N]

The work is that of `benchmarks.training`: 30 of 100 clients a round, 50 samples each. One process, executor batched.
Whole rounds, evaluation included, are split by a stopwatch that is told of the entry to a few functions and of the way
out again, so every moment is in exactly one row; what the stopwatch adds is measured and shown. `--functions` names the
costliest functions of the simulator, with Python's profiler, which is off during arithmetic and makes the rest slower.

Left out: starting, loading, the tables at a run's end; and workers: with N of them, a round has the same costs of the
simulator beside one N-th of the training, and whatever it costs to talk to them.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import pstats
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from rich.console import Console
from rich.table import Table

import fedsim
from benchmarks.peers.work import MODELS
from benchmarks.training_work import write_scenario, write_work
from fedsim.experiment.observer import Observer
from fedsim.kernel import trace
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph
from fedsim.learning.graph_learner import GraphLearner
from fedsim.learning.store import Store
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round

WARM_UP = 2
"""Rounds that are not measured."""
ROUNDS = 20
TRAINING, SCORING, SUMS = "training", "scoring", "sums of models"
CLOCK, GRAPH, PLAN, TRACE, STORE = "clock, network, protocol", "graph and keys", "plan and waves", "trace", "store"
ARITHMETIC = (TRAINING, SCORING, SUMS)
OWN = (CLOCK, GRAPH, PLAN, TRACE, STORE)
ENTRIES: dict[str, tuple[tuple[type, str], ...]] = {
    TRAINING: ((BatchedTrainer, "train"), (BatchedTrainer, "extract")),
    SCORING: ((BatchedTrainer, "score"),),
    SUMS: ((TorchExecutor, "_sum"),),
    GRAPH: ((GraphLearner, "train"), (GraphLearner, "mean"), (GraphLearner, "evaluate"), (Graph, "node")),
    PLAN: ((Forcer, "force"),),
    TRACE: ((trace.Table, "append"),),
    STORE: tuple((Store, name) for name in ("metrics", "keep_metrics", "log", "read_tensors", "checkpoint")),
}
"""Functions with which a section begins; it goes on after those inside have ended. All other time is the clock's."""


class Stopwatch:
    """Seconds and entries of each section; only the innermost one's time goes on."""

    def __init__(self, profiler: cProfile.Profile | None = None) -> None:
        """*profiler* is told to look away while arithmetic is done."""
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.entries: Counter[str] = Counter()
        self._profiler = profiler
        self._measuring = False
        self._sections = [CLOCK]
        self._since_s = time.perf_counter()

    def enter(self, section: str) -> None:
        """The time of *section* goes on, until `leave`."""
        self._turn()
        self.entries[section] += self._measuring
        self._sections.append(section)
        if section in ARITHMETIC:
            self._look(False)

    def leave(self) -> None:
        """The time of the section outside goes on."""
        self._turn()
        if self._sections.pop() in ARITHMETIC:
            self._look(self._measuring)

    def begin(self) -> None:
        """Forget what was before."""
        self._turn()
        self.seconds.clear()
        self.entries.clear()
        self._measuring = True
        self._look(True)

    def end(self) -> None:
        """Keep what has been measured."""
        self._turn()
        self._measuring = False
        self._look(False)

    def timed(self, function: Callable[..., Any], section: str) -> Callable[..., Any]:
        """*function*, in the time of *section*."""

        @functools.wraps(function)
        def within(*arguments: Any, **keywords: Any) -> Any:
            self.enter(section)
            try:
                return function(*arguments, **keywords)
            finally:
                self.leave()

        return within

    def _turn(self) -> None:
        now_s = time.perf_counter()
        if self._measuring:
            self.seconds[self._sections[-1]] += now_s - self._since_s
        self._since_s = now_s

    def _look(self, on: bool) -> None:
        if self._profiler is not None:
            self._profiler.enable() if on else self._profiler.disable()


class Watch(Observer):
    """Measures the rounds after the warm-up."""

    def __init__(self, stopwatch: Stopwatch, rounds: int) -> None:
        self._stopwatch = stopwatch
        self._last = WARM_UP + rounds

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        if done.number == WARM_UP:
            self._stopwatch.begin()
        elif done.number == self._last:
            self._stopwatch.end()


@contextmanager
def watched(stopwatch: Stopwatch) -> Iterator[None]:
    """Within, *stopwatch* is told of every entry."""
    with ExitStack() as patches:
        for section, functions in ENTRIES.items():
            for owner, name in functions:
                timed = stopwatch.timed(getattr(owner, name), section)
                patches.enter_context(mock.patch.object(owner, name, timed))
        yield


def measure(folder: Path, model: str, batch: int, rounds: int, profiler: cProfile.Profile | None = None) -> Stopwatch:
    """The sections of *rounds* rounds."""
    stopwatch = Stopwatch(profiler)
    scenario = fedsim.load(write_scenario(folder, model, batch, WARM_UP + rounds))
    with tempfile.TemporaryDirectory(dir=folder) as out, watched(stopwatch):
        watch = Watch(stopwatch, rounds)
        fedsim.run(scenario, out=Path(out) / "run", executor="batched", workers=1, observer=watch)
    return stopwatch


def seconds_of_an_entry(times: int = 100_000) -> float:
    """What the stopwatch adds to a call."""

    def nothing() -> None:
        return

    def seconds(function: Callable[[], None]) -> float:
        began_s = time.perf_counter()
        for _ in range(times):
            function()
        return time.perf_counter() - began_s

    return (seconds(Stopwatch().timed(nothing, CLOCK)) - seconds(nothing)) / times


def table(measured: dict[tuple[str, int], Stopwatch], rounds: int) -> Table:
    """Milliseconds a round, and per cent of the time for training."""
    shown = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("milliseconds a round (per cent of training)")
    for model, batch in measured:
        shown.add_column(f"{model}, batch {batch}", justify="right")
    rows: list[tuple[str, tuple[str, ...]]] = [(section, (section,)) for section in (*ARITHMETIC, *OWN)]
    entry_s = seconds_of_an_entry()
    for name, sections in [*rows, ("the simulator's own", OWN), ("whole round", (*ARITHMETIC, *OWN))]:
        cells = []
        for watch in measured.values():
            spent_s = sum(watch.seconds[section] for section in sections)
            cells.append(_cell(spent_s / rounds, watch.seconds[TRAINING] / rounds))
        shown.add_row(name, *cells, style="bold" if len(sections) > 1 else None)
    added = [
        _cell(watch.entries.total() * entry_s / rounds, watch.seconds[TRAINING] / rounds) for watch in measured.values()
    ]
    shown.add_row("of it, added by the stopwatch (at most)", *added)
    return shown


def _cell(spent_s: float, training_s: float) -> str:
    return f"{1e3 * spent_s:.2f} ({100 * spent_s / training_s:5.2f} %)"


def print_functions(folder: Path, model: str, batch: int, rounds: int, functions: int) -> None:
    """The costliest functions outside of arithmetic, by their own time."""
    profiler = cProfile.Profile()
    measure(folder, model, batch, rounds, profiler)
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(functions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="A", help=f"of {', '.join(MODELS)}, with commas between them")
    parser.add_argument("--batches", default="5,10")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--functions", type=int, default=0, metavar="N", help="name the N costliest functions too")
    arguments = parser.parse_args()
    cases = [(model, int(batch)) for model in arguments.models.split(",") for batch in arguments.batches.split(",")]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_work(folder, WARM_UP + arguments.rounds)
        measured = {case: measure(folder, *case, arguments.rounds) for case in cases}
        Console(highlight=False, width=120).print(table(measured, arguments.rounds))
        if arguments.functions:
            print_functions(folder, *cases[0], arguments.rounds, arguments.functions)


if __name__ == "__main__":
    main()
