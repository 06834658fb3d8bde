"""Rounds of models with group normalisation, by fedsim and by a tuned PyTorch loop.

``python -m benchmarks.normalised [--times N]`` measures them by turns, so that a slow minute of the machine meets all,
and prints medians and ratios, also of the CPU time of all processes (Linux only), which depends less on who else uses
the machine. `benchmarks.test_normalised` has the same rows for ``make bench``.

A round is eight clients with 40 random samples each in mini-batches of 10, the mean of their models, and 80 tests.
fedsim is measured as it is used, with clock, network, graph, trace and store; only what comes before the first round is
left out. The loop is one process of one thread, with images channels last, and steps of SGD by hand.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch.nn.functional import cross_entropy

import fedsim
from fedsim import registry
from fedsim.experiment.observer import Observer
from fedsim.models.torch_module import build, initial_parameters
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round
from fedsim.scenario.schema import Scenario

CLIENTS, SAMPLES, BATCH, TESTS, CLASSES, RATE = 8, 40, 10, 80, 4, 0.01
MODELS: dict[str, tuple[dict[str, Any], tuple[int, ...]]] = {
    "conv1d": ({"name": "conv1d"}, (1, 1024)),
    "resnet-20": ({"name": "resnet", "normalisation": "group"}, (3, 16, 16)),
}
"""With the shape of their samples."""
FEDSIM = ("auto", "serial")
LOOP = "tuned loop"
ROWS = (*FEDSIM, LOOP)
WARM_UP = 2
"""Rounds that are not measured."""


class _Turns(Observer):
    """Rounds begin when they are asked for."""

    def __init__(self) -> None:
        self.asked, self.ended = threading.Semaphore(0), threading.Semaphore(0)

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        self.ended.release()
        self.asked.acquire()


@contextmanager
def rounds_of(row: str, model: str, rounds: int) -> Iterator[Callable[[], None]]:
    """What does another round each time, *rounds* times at most."""
    with tempfile.TemporaryDirectory() as folder:
        samples, y = _samples(model)
        if row == LOOP:
            yield _loop(model, samples, y)
            return
        np.savez(Path(folder) / "samples.npz", x=samples, y=y, client=_owners(), test=_owners() < 0)
        turns, out = _Turns(), Path(folder) / "run"
        content = _scenario(model, Path(folder) / "samples.npz", rounds + 1)
        run = threading.Thread(target=fedsim.run, args=[content], kwargs=dict(out=out, executor=row, observer=turns))
        run.start()
        turns.ended.acquire()  # a first round, with all that comes before it

        def another() -> None:
            turns.asked.release()
            turns.ended.acquire()

        try:
            yield another
        finally:
            for _ in range(rounds + 1):
                turns.asked.release()
            run.join()


def _owners() -> np.ndarray:
    """Of each sample; -1: of nobody, to test on."""
    return np.repeat(np.arange(-1, CLIENTS), [TESTS, *[SAMPLES] * CLIENTS])


def _samples(model: str) -> tuple[np.ndarray, np.ndarray]:
    rng, count = np.random.default_rng(1), TESTS + CLIENTS * SAMPLES
    return rng.standard_normal((count, *MODELS[model][1]), dtype=np.float32), rng.integers(0, CLASSES, count)


def _scenario(model: str, samples: Path, rounds: int) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "normalised",
            "stop": {"rounds": rounds},
            "topology": {"name": "star", "devices": CLIENTS},
            "network": {
                "cell": {"radio": {"name": "fixed", "uplink_bps": 1e9, "downlink_bps": 1e9}},
                "link": {"rate_bps": 1e9},
            },
            "devices": {"classes": {"machine": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}}}},
            "data": {"name": "arrays", "path": str(samples), "partition": {"name": "natural"}},
            "model": MODELS[model][0],
            "training": {"learning_rate": RATE, "batch_size": BATCH},
            "protocols": [{"name": "fedavg", "fraction": 1.0}],
        }
    )


def _loop(model: str, samples: np.ndarray, labels: np.ndarray) -> Callable[[], None]:
    torch.set_num_threads(1)
    keys, shape = MODELS[model]
    table = registry.load("models", keys["name"])(**keys).table(shape, CLASSES)
    module = build(table)
    for part, tensors in initial_parameters(table, np.random.default_rng(1)).items():
        module.load(part, tensors)
    x, y = torch.from_numpy(samples), torch.from_numpy(labels)
    if len(shape) == 3:
        module, x = module.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    parameters, owners = list(module.parameters()), _owners()

    def one_round() -> None:
        module.train()
        base = [parameter.detach().clone() for parameter in parameters]
        total = [torch.zeros_like(value) for value in base]
        for client in range(CLIENTS):
            with torch.no_grad():
                torch._foreach_copy_(parameters, base)
            own = torch.from_numpy(np.flatnonzero(owners == client))
            for batch in own[torch.randperm(SAMPLES)].split(BATCH):
                cross_entropy(module(x[batch]), y[batch]).backward()  # type: ignore[no-untyped-call]
                with torch.no_grad():
                    for parameter in parameters:
                        assert parameter.grad is not None
                        parameter.sub_(parameter.grad, alpha=RATE)
                        parameter.grad = None
            with torch.no_grad():
                torch._foreach_add_(total, parameters)
        module.eval()
        with torch.no_grad():
            torch._foreach_copy_(parameters, torch._foreach_div(total, float(CLIENTS)))
            cross_entropy(module(x[:TESTS]), y[:TESTS]).item()

    return one_round


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=15, help="Rounds of each that are measured.")
    times = parser.parse_args().times
    shown = Table("model", "", "seconds for a round", f"of the {LOOP}'s", "CPU seconds", f"of the {LOOP}'s")
    for model in MODELS:
        seconds, cpu_s = _by_turns(model, times)
        for row in ROWS:
            median, ratio = statistics.median(seconds[row]), _ratio(seconds[row], seconds[LOOP])
            cpu = f"{cpu_s[row] / times:.3f}", f"{cpu_s[row] / cpu_s[LOOP]:.2f}"
            shown.add_row(model, row, f"{median:.3f}", f"{ratio:.2f}", *cpu)
    Console().print(shown)


def _by_turns(model: str, times: int) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds of each round of each row, and CPU seconds of all of them."""
    found: dict[str, list[float]] = {row: [] for row in ROWS}
    cpu_s = dict.fromkeys(ROWS, 0.0)
    rounds = WARM_UP + times
    with (
        rounds_of("auto", model, rounds) as auto,
        rounds_of("serial", model, rounds) as serial,
        rounds_of(LOOP, model, rounds) as loop,
    ):
        for number in range(rounds):
            for row, another in zip(ROWS, (auto, serial, loop), strict=True):
                begin_s, begin_cpu_s = time.perf_counter(), _cpu_s()
                another()
                if number >= WARM_UP:
                    found[row].append(time.perf_counter() - begin_s)
                    cpu_s[row] += _cpu_s() - begin_cpu_s
    return found, cpu_s


def _cpu_s() -> float:
    """CPU seconds of this process and of those that it has begun, so far."""
    children = [pid for listed in Path("/proc/self/task").glob("*/children") for pid in listed.read_text().split()]
    stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in children)
    ticks = sum(int(fields[11]) + int(fields[12]) for fields in stats)  # of the user and of the system
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def _ratio(seconds: list[float], others: list[float]) -> float:
    """The median of the ratios of neighbours."""
    return statistics.median(one / other for one, other in zip(seconds, others, strict=True))


if __name__ == "__main__":
    main()
