"""What SCAFFOLD's clients cost in the batched executor, against local SGD and against a term of which nothing is known.

    python -m benchmarks.objectives [--models NAME ...] [--passes N]

One wave of 20 clients with 50 samples each of 28 x 28 random pixels and 62 classes, one epoch with batches of 5, in
this process, on one thread. Each client has a control variate of its own. Seconds are those of a wave; the kinds come
by turns, so that a slow minute of the machine meets all, and what counts is their ratio. Memory is what a process of
its own has at the peak of one wave (Linux); models that clients remember and send are most of it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.peers.work import CLASSES, SAMPLES
from fedsim import registry
from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning.batches import Seen
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.trainer import TensorDict
from fedsim.learning.executors.wave import Source, Training, Wave, WeightedSum
from fedsim.learning.objectives.control_variates import OWN, ControlVariates
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.train import Train, sent_as, state_as
from fedsim.learning.rules.scaffold import CONTROL, CONTROL_CHANGE
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import initial_parameters

CLIENTS = 20
SHAPE = (1, 28, 28)
SGD = TrainingSettings(learning_rate=0.05, batch_size=5)


class Undeclared(ControlVariates):
    """The same term, which does not say that it is a constant."""

    @property
    def pull(self) -> float | None:  # type: ignore[override]  # which narrows it to a number
        """Unknown."""
        return None


KINDS: dict[str, Objective] = {
    "local SGD": Plain(),
    "SCAFFOLD": ControlVariates(),
    "SCAFFOLD, undeclared": Undeclared(),
}


class _Bench:
    """A trainer, and the waves of one model."""

    def __init__(self, model: str) -> None:
        self._table: LayerTable = registry.load("models", model)().table(SHAPE, CLASSES)
        total, rng = CLIENTS * SAMPLES, np.random.default_rng(1)
        self._dataset = FederatedDataset(
            name="random",
            classes=CLASSES,
            sample_shape=SHAPE,
            sample_bytes=1.0,
            client_samples=np.full(CLIENTS, SAMPLES),
            stored=rng.random((total + 1, *SHAPE), dtype=np.float32),
            y=rng.integers(CLASSES, size=total + 1),
            train_ids=tuple(np.split(np.arange(total), CLIENTS)),
            test_ids=np.arange(total, total + 1),
            client_test_ids=tuple(np.empty((CLIENTS, 0), np.int64)),
        )
        BatchedTrainer.prepare(self._table, "cpu", "float32")
        self._trainer = BatchedTrainer(self._table, self._dataset, "cpu", "float32")
        self._model = initial_parameters(self._table, rng)
        self._control = {part: _times(tensors, 0.1) for part, tensors in self._model.items()}
        names = {f"{part}.{name}": one for part, tensors in self._model.items() for name, one in tensors.items()}
        self._own = [_times(names, client / CLIENTS) for client in range(CLIENTS)]

    def seconds(self, objective: Objective) -> float:
        """Of one wave."""
        values = [*self._model.values(), *self._control.values(), *self._own]
        begin = time.perf_counter()
        self._trainer.train(self._wave(objective), values)
        return time.perf_counter() - begin

    def _wave(self, objective: Objective) -> Wave:
        parts = self._table.parts
        wanted: tuple[str, ...] = ()
        if objective.makes:
            wanted = state_as(OWN), *(sent_as(CONTROL_CHANGE, part) for part in parts)
        trainings = []
        for client in range(CLIENTS):
            inputs: dict[Slot, Source] = {Slot("model", part=part): at for at, part in enumerate(parts)}
            if objective.receives:
                inputs |= {Slot(CONTROL, part=part): len(parts) + at for at, part in enumerate(parts)}
                inputs[Slot("state", part=OWN)] = 2 * len(parts) + client
            about = Train(self._table.digest, SGD, objective, Float32(), Seen.of(self._dataset, client, None))
            trainings.append(Training(about, Stream(1, "batches", client), inputs, wanted))
        base: dict[str, Any] = {part: at for at, part in enumerate(parts)}
        return Wave(tuple(trainings), WeightedSum((1 / CLIENTS,) * CLIENTS, base, tuple(range(CLIENTS))))


def _times(tensors: TensorDict, number: float) -> TensorDict:
    return {name: tensor * number for name, tensor in tensors.items()}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["small_cnn", "hfedms_cnn"], help="Which models are trained.")
    parser.add_argument("--passes", type=int, default=7, help="Waves of each kind that are measured.")
    parser.add_argument("--memory-of", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.memory_of:
        _Bench(options.models[0]).seconds(KINDS[options.memory_of])
        facts = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
        sys.stdout.write(facts["VmHWM"].split()[0] + "\n")
        return
    table = Table("model", "objective", "seconds, median", "least", "of local SGD's", "MB at the peak")
    for model in options.models:
        bench, found = _Bench(model), defaultdict[str, list[float]](list)
        for number in range(1 + options.passes):
            for kind, objective in KINDS.items():
                seconds = bench.seconds(objective)
                if number:
                    found[kind].append(seconds)
        for kind, measured in found.items():
            ratio = statistics.median(measured) / statistics.median(found["local SGD"])
            numbers = f"{statistics.median(measured):.3f}", f"{min(measured):.3f}", f"{ratio:.2f}"
            table.add_row(model, kind, *numbers, f"{_memory(model, kind) / 1e6:,.0f}")
    Console().print(table)


def _memory(model: str, kind: str) -> int:
    arguments = [sys.executable, "-m", "benchmarks.objectives", "--models", model, "--memory-of", kind]
    return 1024 * int(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.split()[-1])


if __name__ == "__main__":
    main()
