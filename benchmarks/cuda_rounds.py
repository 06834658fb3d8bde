"""Whole rounds by fedsim's public path, on a CUDA device and on the CPU: seconds, and errors against float64."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import load_file

import fedsim
from benchmarks.cuda_work import Asked, error, flat
from benchmarks.models_work import MODELS, Work
from benchmarks.peers.work import Record
from benchmarks.training_fedsim import Watch
from benchmarks.training_work import SEED, table, write_scenario, write_work
from fedsim.kernel.streams import Streams
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import initial_parameters
from fedsim.scenario.schema import Scenario

RESIDUAL = "resnet-20"
OF_IMAGES = 10
"""Samples in a mini-batch of the residual network."""


@dataclass(frozen=True)
class Subject:
    """A model, and its scenario of so many rounds."""

    name: str
    table: LayerTable
    scenario: Callable[[int], Scenario]

    @property
    def start(self) -> NDArray[np.float64]:
        """What training starts from."""
        return flat(self.table, initial_parameters(self.table, Streams(SEED)("model/init").generator()))


@dataclass(frozen=True)
class Ran:
    """What a run has shown."""

    ends_s: list[float]
    loss: float
    model: NDArray[np.float64]

    @property
    def round_s(self) -> float:
        """The median after the first round."""
        return float(np.median(np.diff(self.ends_s)))


def ways(torch_device: str) -> dict[str, dict[str, str]]:
    """Who computes in what, and where; the first is the one whose seconds others are compared with."""
    there = {"executor": "batched", "torch_device": torch_device}
    made = {f"{name}, float32 on cpu": {"executor": name} for name in ("processes", "batched")}
    for precision in ("float32", "tf32", "bfloat16") if torch_device == "cuda" else ("float32", "bfloat16"):
        made[f"batched, {precision} on {torch_device}"] = there | {"precision": precision}
    return made


def subjects(asked: Asked) -> list[Subject]:
    """Two models whose clients are trained together, and one of the plain loop."""
    write_work(asked.folder, 1)

    def of_images(model: str, rounds: int) -> Scenario:
        return fedsim.load(write_scenario(asked.folder, model, asked.batch, rounds))

    residual = Work(next(model for model in MODELS if model.label == RESIDUAL), OF_IMAGES)
    return [
        *(Subject(f"model {model}", table(model), partial(of_images, model)) for model in "AB"),
        Subject(RESIDUAL, residual.table(), residual.scenario),
    ]


def ran(subject: Subject, asked: Asked, rounds: int, **options: str) -> Ran:
    """A run of so many rounds."""
    record = Record()
    with tempfile.TemporaryDirectory(dir=asked.folder) as out:
        results = fedsim.run(subject.scenario(rounds), out=f"{out}/run", observer=Watch(record), **options)
        model = {part: load_file(path) for part, path in results.final_weights("fedavg", SEED).items()}
        return Ran(record.ends_s, record.losses[-1], flat(subject.table, model))


def rounds(asked: Asked) -> Iterator[str]:
    """A line for each way and model: seconds a round, and how far the first update is from float64 on the CPU.

    What is rounded where weights are kept in float32 is part of it, and the larger part for model B. Workers come
    first: torch lets no process train whose parent has done so on a device.
    """
    models = subjects(asked)
    true = [ran(model, asked, 1, executor="processes", precision="float64").model for model in models]
    first_s: dict[str, float] = {}
    for way, options in ways(asked.torch_device).items():
        for model, expected in zip(models, true, strict=True):
            off = error(ran(model, asked, 1, **options).model, expected, model.start)
            several = ran(model, asked, 1 + asked.rounds, **options)
            times = first_s.setdefault(model.name, several.round_s) / several.round_s
            yield (
                f"{model.name:<9} {way:<26} {several.round_s:8.3f} s a round, {times:6.1f} x the first, "
                f"first update off by {off:.1e}, test loss {several.loss:.4f}"
            )
