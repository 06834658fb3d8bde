"""Waves of clients that train together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors.batched.compiled.geometry import geometries
from fedsim.learning.executors.batched.compiled.machine_code import convolution_kernels
from fedsim.learning.executors.batched.course import Draw, Stage
from fedsim.learning.executors.batched.cuda_graphs import CudaRecorder
from fedsim.learning.executors.batched.fronts import FrontKind, front_kind
from fedsim.learning.executors.batched.group import Change, Group, groups
from fedsim.learning.executors.batched.lockstep import Lockstep
from fedsim.learning.executors.batched.low_rank import prepare_factors
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.recordings import Recorder, Recordings
from fedsim.learning.executors.batched.samples import XY, ResidentSamples, Samples
from fedsim.learning.executors.batched.scoring import tally_of
from fedsim.learning.executors.batched.support import Architecture, architecture
from fedsim.learning.executors.cuda_arithmetic import arithmetic
from fedsim.learning.executors.trainer import Part, Score, Tally, Trainer, number_type, scores_from
from fedsim.learning.executors.wave import Made, Source, Wave, WeightedSum
from fedsim.models.table import ModelTable

__all__ = ["BatchedTrainer"]


class BatchedTrainer(Trainer):
    """Clients of a wave that start from one model and train by one recipe go through their steps together."""

    precisions = ("float32", "float64", "tf32", "bfloat16")
    stacked: ClassVar[bool] = False
    """Whether to train as on ``cuda`` wherever it is: convolutions of all clients at once, samples on the device."""
    recorder: ClassVar[type[Recorder] | None] = None
    """What records groups that come again; None: CUDA graphs, on ``cuda``."""

    def __init__(self, table: ModelTable, dataset: FederatedDataset, torch_device: str, precision: str) -> None:
        self._torch_device, self._precision = torch_device, precision
        self._products = _products(precision)
        self._dataset = dataset
        self._architecture = architecture(table)
        stacked, dtype = self.stacked or torch_device == "cuda", number_type(precision)
        self._front_kind = front_kind(self._architecture.front, stacked=stacked, products=self._products)
        # Not a method: the trainer, and all that lies on the device, is gone as soon as nobody holds it.
        self._lockstep = partial(_lockstep, self._architecture, dataset, self._front_kind, self._products)
        self._samples: Samples = Samples(dataset, dtype)
        self._recordings: Recordings | None = None
        if stacked:
            self._samples = resident = ResidentSamples(dataset, dtype, torch_device)
            recorder = self.recorder or (CudaRecorder if torch_device == "cuda" else None)
            if recorder is not None:
                self._recordings = Recordings(dataset, resident, recorder(), self._lockstep)

    @classmethod
    def prepare(cls, table: ModelTable, torch_device: str, precision: str) -> None:
        """Make the machine code, for a CPU."""
        if torch_device != "cpu":
            return
        found, dtype, products = architecture(table), number_type(precision), _products(precision)
        if front_kind(found.front, stacked=cls.stacked, products=products) == "compiled":
            for shape in geometries(found.front) or ():
                convolution_kernels(shape, dtype, products)
        for number, block in enumerate(found.back):
            first = number == 0 and not found.front
            prepare_factors(block.layer.outputs, block.layer.inputs, dtype, products, first=first)

    @torch.no_grad()
    def train(self, wave: Wave, values: Sequence[Part]) -> list[dict[str, Part]]:
        """Group after group."""
        with arithmetic(self._torch_device, self._precision):
            return self._train(wave, values)

    def _train(self, wave: Wave, values: Sequence[Part]) -> list[dict[str, Part]]:
        outputs: list[dict[str, Part]] = [{} for _ in wave.trainings]

        def made(source: Source) -> Part:
            return outputs[source.training][source.output] if isinstance(source, Made) else values[source]

        total = None if wave.sum is None else _Total(wave.sum, values)
        for group in groups(wave, values):
            change = None if self._recordings is None else self._recordings.trained(group, outputs.__setitem__)
            if change is None:
                change = self._lockstep(group, self._draw).run(made, outputs.__setitem__)
            if total is not None:
                total.add(change, group.base)
        return outputs if total is None else [*outputs, total.result]

    def _draw(self, stage: Stage) -> Iterator[XY]:
        return self._samples.mini_batches(stage.training.parameters, stage.training.stream)

    @torch.no_grad()
    def score(self, model: Mapping[str, Part], batches: Sequence[npt.NDArray[np.int64]]) -> list[Score]:
        """One product for each layer and batch."""
        with arithmetic(self._torch_device, self._precision):
            return scores_from([self._tally(model, ids) for ids in batches])

    def _tally(self, model: Mapping[str, Part], ids: npt.NDArray[np.int64]) -> Tally:
        x, y = self._samples.of(ids)
        regression = self._dataset.regression
        return tally_of(
            self._architecture,
            model,
            x,
            y,
            regression=regression,
            compiled=self._front_kind == "compiled",
            products=self._products,
        )


def _products(precision: str) -> torch.dtype | None:
    """The type in which factors of large products are rounded; None: they are taken as they are."""
    return torch.bfloat16 if precision == "bfloat16" else None


def _lockstep(
    architecture: Architecture,
    dataset: FederatedDataset,
    front_kind: FrontKind,
    products: torch.dtype | None,
    group: Group,
    draw: Draw,
) -> Lockstep:
    return Lockstep(architecture, dataset, draw, group, Recipe.of(group.parameters, products), front_kind)


class _Total:
    """The wave's weighted sum, group by group."""

    def __init__(self, total: WeightedSum, values: Sequence[Part]) -> None:
        self._base = {part: values[at] for part, at in total.base.items()}
        self.result: dict[str, Part] = {part: {} for part in self._base}

    def add(self, change: Change, base: Mapping[str, Part]) -> None:
        """*change* is the total's own from now on."""
        for part, sum_base in self._base.items():
            for name, tensor in change.parts[part].items():
                if base[part] is not sum_base:
                    tensor.add_(base[part][name] - sum_base[name], alpha=change.weight)
                if name in self.result[part]:
                    self.result[part][name].add_(tensor)
                else:
                    self.result[part][name] = tensor
