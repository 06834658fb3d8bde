"""How long a round takes beside what it would at best, where clients hold very different numbers of samples.

``python -m benchmarks.makespan`` trains rounds of ten clients with two workers: ResNet-20 in the plain loop, client by
client, and `small_cnn` in waves. Samples are random; who has how many is drawn by Dirichlet's distribution, class by
class, anew for each seed (``--partition quantity_skew``: of all samples at once, which is harder). The ideal is the
larger of all seconds of training shared out among the workers, and of the longest job: all in seconds that jobs took in
that same round, so that a slow minute of the machine counts for both.

For 4 and 16 workers the jobs' measured seconds are played through the same `Schedule` that real workers follow. Waves
are also cut by count, as if all clients had the same to do. Waves have no lower bound of their own: of two waves, the
longer one is set against half of both.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

import fedsim
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.schedule import Schedule, Task
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.rules import changes
from fedsim.scenario.schema import Scenario

CLIENTS, CLASSES, PIXELS, TESTS = 10, 10, 16, 100
SAMPLES = {"resnet": 1500, "small_cnn": 15_000}
"""That all clients have together: so many that a round takes seconds."""
ROUNDS = 4
"""The first one is not counted: workers are made in it."""
ALPHA = {"dirichlet": 0.1, "quantity_skew": 0.5}


class Job(NamedTuple):
    """What a worker did without a break."""

    clients: tuple[int, ...]
    begin_s: float
    end_s: float
    samples: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end_s - self.begin_s


def ideal_s(seconds: Sequence[float], workers: int) -> float:
    """No schedule is shorter."""
    return max(sum(seconds) / workers, *seconds)


def replayed_s(lines: Sequence[Sequence[Task]], seconds: dict[Task, float], workers: int) -> float:
    """How long *workers* take for *lines* whose tasks take so many *seconds*, if all else takes none."""
    schedule: Schedule[Task] = Schedule(workers)
    for line in lines:
        schedule.put_line(line)
    hands: list[list[Task]] = [[] for _ in range(workers)]
    free_s = [0.0] * workers
    ends_s: dict[Task, float] = {}
    taken, done, now_s = dict.fromkeys(range(len(lines)), 0), set[Task](), 0.0
    while True:
        while found := schedule.next(hands):
            worker, task = found
            schedule.begin(task)
            hands[worker].append(task)
            free_s[worker] = ends_s[task] = max(now_s, free_s[worker]) + seconds[task]
        if not ends_s.keys() - done:
            return now_s
        now_s, ended = min((end_s, number) for number, (task, end_s) in enumerate(ends_s.items()) if task not in done)
        task = list(ends_s)[ended]
        done.add(task)
        next(hand for hand in hands if task in hand).remove(task)
        for number, line in enumerate(lines):
            while taken[number] < len(line) and line[taken[number]] in done:
                schedule.take(line[taken[number]])
                taken[number] += 1


@contextmanager
def noted(trainer: type[Trainer], file: Path) -> Iterator[None]:
    """Every wave that a *trainer* trains, in whatever process, is a line of *file* meanwhile."""
    train = trainer.train

    def timed(self: Trainer, wave: Any, *arguments: Any) -> Any:
        begin_s = time.perf_counter()
        made = train(self, wave, *arguments)
        about = [training.about for training in wave.trainings]
        words = (",".join(str(one.seen.client) for one in about), begin_s, time.perf_counter())
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a") as lines:
            lines.write(" ".join(map(str, (*words, sum(one.sizes.total for one in about)))) + "\n")
        return made

    with mock.patch.object(trainer, "train", timed):
        yield


def jobs_of(model: str, executor: str, partition: str, seed: int, *, by_count: bool = False) -> list[list[Job]]:
    """Of each round of a run of two workers."""
    with tempfile.TemporaryDirectory() as folder:
        noise, file = np.random.default_rng(seed), Path(folder) / "jobs"
        samples = noise.standard_normal((SAMPLES[model] + TESTS, 3, PIXELS, PIXELS), dtype=np.float32)
        y, test = noise.integers(0, CLASSES, len(samples)), np.arange(len(samples)) >= SAMPLES[model]
        np.savez(Path(folder) / "samples.npz", x=samples, y=y, test=test)
        content = scenario(model, partition, Path(folder) / "samples.npz", seed)
        cut = changes.partial_sums
        equal = mock.patch.object(changes, "partial_sums", lambda work: cut([1] * len(work) if by_count else work))
        with noted(PlainTrainer if executor == "processes" else BatchedTrainer, file), equal:
            fedsim.run(content, out=Path(folder) / "run", executor=executor, workers=2)
        found = [line.split() for line in file.read_text().splitlines()]
    jobs = [Job(tuple(map(int, who.split(","))), float(a), float(b), int(count)) for who, a, b, count in found]
    jobs.sort(key=lambda job: job.end_s)
    size = len(jobs) // ROUNDS
    return [jobs[first : first + size] for first in range(size, len(jobs), size)]


def scenario(model: str, partition: str, samples: Path, seed: int) -> Scenario:
    """All clients in each round."""
    return Scenario.model_validate(
        {
            "name": "makespan",
            "seeds": [seed],
            "stop": {"rounds": ROUNDS},
            "topology": {"name": "star", "devices": CLIENTS},
            "network": {
                "cell": {"radio": {"name": "fixed", "uplink_bps": 1e9, "downlink_bps": 1e9}},
                "link": {"rate_bps": 1e9},
            },
            "devices": {"classes": {"camera": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}}}},
            "data": {
                "name": "arrays",
                "path": str(samples),
                "partition": {"name": partition, "alpha": ALPHA[partition]},
            },
            "model": {"name": model},
            "training": {"learning_rate": 0.01, "batch_size": 16},
            "protocols": [{"name": "fedavg", "fraction": 1.0}],
        }
    )


def measured(rounds: Sequence[Sequence[Job]], *, in_waves: bool = False) -> float:
    """From the first job's beginning to the last one's end, beside the ideal; the median of the rounds."""
    ratios = []
    for jobs in rounds:
        seconds = [job.seconds for job in jobs]
        ideal = sum(seconds) / 2 if in_waves else ideal_s(seconds, workers=2)
        ratios.append((max(job.end_s for job in jobs) - min(job.begin_s for job in jobs)) / ideal)
    return statistics.median(ratios)


def replayed(rounds: Sequence[Sequence[Job]], workers: int) -> float:
    """The same with more *workers*, by the seconds that each client's job took in the median."""
    jobs = {job.clients: job for job in rounds[0]}
    took = {
        clients: statistics.median(job.seconds for jobs_of_it in rounds for job in jobs_of_it if job.clients == clients)
        for clients in jobs
    }
    order = sorted(jobs)  # of senders
    cut = changes.partial_sums([jobs[clients].samples for clients in order])
    seconds: dict[Task, float] = {}
    lines: list[list[Task]] = []
    for some in cut:
        lines.append([Task(work=jobs[order[at]].samples) for at in some])
        seconds |= dict(zip(lines[-1], (took[order[at]] for at in some), strict=True))
    return replayed_s(lines, seconds, workers) / ideal_s([*seconds.values()], workers)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="Draws of who holds how much.")
    parser.add_argument("--partition", choices=[*ALPHA], default="dirichlet")
    given = parser.parse_args()
    shown = Table(title="Makespan beside the ideal")
    shown.add_column("seed", justify="right")
    shown.add_column("largest client", justify="right")
    for workers in (2, 4, 16):
        shown.add_column(f"clients, {workers} workers", justify="right")
    for cut in ("work", "count"):
        shown.add_column(f"waves by {cut}, 2 workers", justify="right")
    for seed in range(1, given.seeds + 1):
        alone = jobs_of("resnet", "processes", given.partition, seed)
        waves = [
            measured(jobs_of("small_cnn", "batched", given.partition, seed, by_count=by_count), in_waves=True)
            for by_count in (False, True)
        ]
        largest = max(job.samples for job in alone[0]) / sum(job.samples for job in alone[0])
        ratios = (measured(alone), replayed(alone, 4), replayed(alone, 16), *waves)
        shown.add_row(str(seed), f"{largest:.0%}", *(f"{ratio:.3f}" for ratio in ratios))
    Console().print(shown)


if __name__ == "__main__":
    main()
